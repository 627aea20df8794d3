# Ends every process of one command, run in the sandbox by the bash that the SDK starts; builtins but for the sleep, since a
# template need not have more. Set before it: `tag`, an entry of the environment that the command's processes
# inherited; `leader`, the id of its first process, or `none`; `patience`, how many tenths of a second to wait
# for a command that may only be starting.
#
# A process that cleared its environment is found as a descendant, or by its session or group; it is lost only if
# it also made a session of its own and its parent is gone.

end_tree() {
    local round idle=0 dir pid stat grown
    local -a entries
    local -A parents found
    for ((round = 0; round < 100; round++)); do
        parents=() found=()
        for dir in /proc/[0-9]*; do
            pid=${dir#/proc/} stat='' entries=()
            IFS= read -r -d '' stat < "$dir/stat"
            # The name, in parentheses, may hold anything; after the last one come state, parent, group, session.
            set -- ${stat##*) }
            [[ -z $1 || $1 == [ZX] || $pid == "$$" ]] && continue
            parents[$pid]=$2
            mapfile -t -d '' entries < "$dir/environ"
            [[ $3 == "$leader" || $4 == "$leader" || " ${entries[*]} " == *" $tag "* ]] && found[$pid]=1
        done
        grown=1
        while ((grown)); do
            grown=0
            for pid in "${!parents[@]}"; do
                [[ -z ${found[$pid]} && -n ${found[${parents[$pid]}]} ]] && found[$pid]=1 grown=1
            done
        done
        if ((${#found[@]} == 0)); then
            ((idle++ >= patience)) && return 0
            sleep 0.1
            continue
        fi
        patience=0
        # Stopped first: a shell whose child dies before it would still print a word about that.
        kill -STOP "${!found[@]}"
        kill -KILL "${!found[@]}"
        # What is still there after a few rounds may belong to root.
        ((round > 3)) && sudo -n kill -KILL "${!found[@]}"
    done
    return 1
}
end_tree 2> /dev/null
left=$?
