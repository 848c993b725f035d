# Completion of ic for bash 4 or later.
#
# For this session:   source <(ic completions bash)
# For every session:  ic completions bash >~/.local/share/bash-completion/completions/ic

_ic() {
    # The program says what can stand at the cursor: a line is a candidate, quoted as it must be.
    mapfile -t COMPREPLY < <(
        IC_COMPLETE=bash command ic "${COMP_TYPE:-9}" "${COLUMNS:-80}" "$2" \
            "${COMP_LINE:0:COMP_POINT}" 2>/dev/null
    )
    # Inside of a directory, the name goes on.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

# The order is the program's own; before bash 4.4 it is the alphabet's.
complete -o nosort -F _ic ic 2>/dev/null || complete -F _ic ic
