#!/usr/bin/env bash
# peridot-mpi on two machines: two network namespaces joined by a veth pair, a rank in each, over TCP. Says what a link
# of 1 Gbit/s and 1 ms costs a token, beside what the bytes of its row predict. With PERIDOT_TEST_ALL.
. "$(dirname "$0")/command.sh"

mpi=$peridot-mpi
stories=$source/models/stories.gguf
[ "${PERIDOT_TEST_ALL:-}" ] || { echo "skipped: PERIDOT_TEST_ALL is not set"; exit 0; }
for program in "$mpi" mpirun ip tc nsenter unshare; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not there"; exit 0; }
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS=detect_leaks=0   # those of MPI
export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=10.99.0.0/24 OMPI_MCA_pml=ob1
export PRTE_MCA_prte_if_include=10.99.0.0/24 PMIX_MCA_ptl=client,server

machines=()
for i in 1 2; do
    unshare --net --uts sleep 600 &
    machines+=($!)
done
trap 'kill "${machines[@]}" 2>/dev/null; rm -rf "$folder"' EXIT
sleep 0.5
on() { nsenter --net="/proc/${machines[$1]}/ns/net" --uts="/proc/${machines[$1]}/ns/uts" "${@:2}"; }
if ! on 0 ip link add veth0 type veth peer name veth1 netns "${machines[1]}" 2>"$folder/err"; then
    echo "skipped: no right to make networks"
    exit 0
fi
for i in 0 1; do
    on $i hostname "machine$i"
    on $i ip link set lo up
    on $i ip addr add 10.99.0.$((i + 1))/24 dev veth$i
    on $i ip link set veth$i up
done

# What mpirun calls in place of ssh: OPTIONS HOST COMMAND...
cat >"$folder/agent" <<END
#!/bin/sh
while [ "\$1" != 10.99.0.2 ]; do shift; done
shift
exec nsenter --net=/proc/${machines[1]}/ns/net --uts=/proc/${machines[1]}/ns/uts sh -c "\$*"
END
chmod +x "$folder/agent"

# over ARGUMENTS...: two ranks, one on each machine.
over() {
    on 0 timeout 120 mpirun --prtemca plm_ssh_agent "$folder/agent" --host 10.99.0.1,10.99.0.2 \
        --map-by node:oversubscribe -n 2 "$mpi" "$@" \
        >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
}
# Tokens/s that run reports.
rate() { sed -nE 's|.*reply: [0-9]+ tokens, ([0-9.]+) tokens/s.*|\1|p' "$folder/err"; }

run run -m "$stories" -n 100 --temp 0 "The little fox"
cp "$folder/out" "$folder/want"
over run -m "$stories" -n 100 --temp 0 "The little fox"
check "two machines: status $status" [ $status = 0 ]
check "two machines: a rank on each" matches err '^1 +machine1 '
check "two machines: the same text" cmp -s "$folder/out" "$folder/want"
plain=$(rate)
echo "veth: $plain tokens/s"
over bench -m "$stories" -p 16 -n 8 -r 1
check "bench over two machines" [ $status = 0 ]
sed -nE 's/^0 .* %  (.*)/link: \1 one way/p' "$folder/err"
if on 0 tc qdisc add dev veth0 root netem delay 500us rate 1gbit 2>/dev/null &&
    on 1 tc qdisc add dev veth1 root netem delay 500us rate 1gbit; then
    over run -m "$stories" -n 100 --temp 0 "The little fox"
    check "a slow link: the same text" cmp -s "$folder/out" "$folder/want"
    # there and back; a row of d_model floats, and 128 candidates of 8 bytes
    awk -v slow="$(rate)" -v plain="$plain" -v d_model=256 'BEGIN {
        printf "1 Gbit/s, 1 ms: %s tokens/s: a token costs %.2f ms more; predicted: %.2f ms\n", slow,
            1000 / slow - 1000 / plain, 1 + (d_model * 4 + 1024) * 8 / 1e6 }'
else
    echo "skipped: this kernel has no netem"
fi
finish
