# Completion of peridot for fish: the command itself knows what may stand where.
function __peridot_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] help --complete $words[2..] 2>/dev/null
    or __fish_complete_path (commandline -ct)
end
complete -c peridot -f -k -a '(__peridot_complete)'
