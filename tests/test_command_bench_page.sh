#!/usr/bin/env bash
# The pages of peridot bench in Chromium: tests/bench_page.py drives it.
. "$(dirname "$0")/command.sh"

for program in chromedriver python3; do
    command -v $program >/dev/null || { echo "skipped: $program is not there"; exit 0; }
done

HOME=$folder chromedriver --port=0 >"$folder/driver" 2>&1 &
driver=$!
trap 'kill $driver 2>/dev/null; wait; rm -rf "$folder"' EXIT
report=$source/tests/reports/llvmpipe-gemma2-2b-q4_0.json
python3 "$source/tests/bench_reports.py" "$report" "$folder/many" 50
"$peridot" bench --compare "$folder/many" >"$folder/many.html"
"$peridot" bench --compare "$source/tests/reports" >"$folder/few.html"
"$peridot" bench -o html "$report" >"$folder/single.html"
python3 "$source/tests/bench_reports.py" "$report" "$folder/thirty" 30 standard
"$peridot" report --site "$folder/board" "$folder/thirty" 2>/dev/null
for _ in $(seq 600); do
    port=$(sed -nE 's|.*started successfully on port ([0-9]+).*|\1|p' "$folder/driver")
    if [ "$port" ]; then break; fi
    sleep 0.1
done
check "chromedriver starts" [ "$port" ]
python3 -B "$source/tests/bench_page.py" "http://127.0.0.1:$port" "$folder"/{many,few,single}.html "$folder/board" \
    ${PERIDOT_SCREENSHOTS:+"$PERIDOT_SCREENSHOTS"} >"$folder/out" 2>"$folder/err"
check "the pages work" [ $? = 0 ]
finish
