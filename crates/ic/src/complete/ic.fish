# Completion of ic for fish 3 or later.
#
# For this session:   ic completions fish | source
# For every session:  ic completions fish >~/.config/fish/completions/ic.fish

function __ic_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l typed (commandline --current-token --cut-at-cursor)
    # Variables that are set for the call come before the program's name.
    while string match --quiet --regex '^\w+=' -- $words[1]
        set --erase words[1]
    end
    set --erase words[1]
    # The program says what can stand at the cursor: a line is a candidate and, after a tab, what it is.
    IC_COMPLETE=fish command ic $words "$typed" 2>/dev/null
end

complete --command ic --no-files --keep-order --arguments '(__ic_complete)'
