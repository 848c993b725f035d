#compdef ic
# Completion of ic for zsh 5 or later.
#
# For this session:   source <(ic completions zsh)
# For every session:  ic completions zsh >~/.zfunc/_ic   (a directory in fpath, before compinit)

_ic() {
    local line value
    local -a answer names directories
    # The program says what can stand at the cursor: a line is a candidate and, after a tab, what it is.
    answer=(${(f)"$(IC_COMPLETE=zsh command ic "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)"})
    # A tilde that is quoted is the name of a file.
    compset -P '\~/' && answer=(${answer#\~/})
    for line in $answer; do
        value=${line%%$'\t'*}
        line=${value//(#m)[\\:]/\\$MATCH}${${line#$value}/$'\t'/:}
        if [[ $value == */ ]]; then
            directories+=(${line%/})
        else
            names+=($line)
        fi
    done
    # Inside of a directory, the name goes on.
    (( $#directories )) && _describe -V -t directories directory directories -S / -r ' /'
    (( $#names )) && _describe -V -t values value names
}

if [[ ${funcstack[1]-} == _ic ]]; then
    _ic "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _ic ic
fi
