# Completion of peridot for bash: the command itself knows what may stand where.
_peridot() {
    local line=${COMP_LINE:0:COMP_POINT} word words candidates
    read -ra words <<<"$line"
    [[ $line != *[[:space:]] ]] || words+=("")
    word=${words[-1]}
    candidates=$("${words[0]}" help --complete "${words[@]:1}" 2>/dev/null) || compopt -o default
    # bash replaces what comes after the last of these characters
    local replaced=${word##*[=:]}
    local kept=${word%"$replaced"}
    mapfile -t COMPREPLY < <(while IFS=$'\t' read -r word _; do
        [ ! "$word" ] || printf '%s\n' "${word#"$kept"}"
    done <<<"$candidates")
}
complete -F _peridot peridot
