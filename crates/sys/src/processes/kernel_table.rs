//! The table of processes of the kernel of macOS (`libproc.h`), which does not tell of other users' processes.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;

use super::ProcessEntry;

pub(super) fn boot_id() -> String {
    text_of(c"kern.bootsessionuuid").unwrap_or_default()
}

pub(super) fn place() -> Option<(Vec<Vec<u8>>, String)> {
    let mut machine = [0_u8; 16];
    let no_wait = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    #[allow(unsafe_code, reason = "macOS names the machine by a C function")]
    // SAFETY: it writes 16 bytes, and reads the time only during the call.
    let failed = unsafe { libc::gethostuuid(machine.as_mut_ptr(), &raw const no_wait) };
    // There is one namespace of process numbers.
    (failed == 0).then(|| (vec![machine.to_vec()], "0".to_owned()))
}

/// `None`: there is no such process, or it is another user's.
pub(super) fn entry(pid: u32) -> Option<ProcessEntry> {
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = libc::c_int::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    #[allow(unsafe_code, reason = "macOS tells of a process by a C function")]
    // SAFETY: the buffer has the size that is passed. It was zeroed, and every pattern of bits is a value of its type.
    let info = unsafe {
        let pid = libc::c_int::try_from(pid).ok()?;
        let length = libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, info.as_mut_ptr().cast(), size);
        (length == size).then(|| info.assume_init())?
    };
    let name = info.pbi_comm.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    Some(ProcessEntry {
        group: info.pbi_pgid,
        parent: info.pbi_ppid,
        // Seconds alone, as `ps` prints them: a process has one start time, however it is asked for.
        start_time: info.pbi_start_tvsec,
        alive: info.pbi_status != libc::SZOMB,
        name,
    })
}

/// A text that the kernel keeps under a name.
fn text_of(name: &CStr) -> Option<String> {
    let mut text = [0_u8; 256];
    let mut length = text.len();
    #[allow(unsafe_code, reason = "macOS tells of itself by a C function")]
    // SAFETY: the name ends with zero; the kernel writes at most `length` bytes, and says how many.
    let failed =
        unsafe { libc::sysctlbyname(name.as_ptr(), text.as_mut_ptr().cast(), &raw mut length, ptr::null_mut(), 0) };
    let text = text.get(..length).filter(|_| failed == 0)?;
    Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
}
