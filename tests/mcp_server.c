/* A small server of the Model Context Protocol on standard streams, for tests/windows.sh, where there is no Python. Its
 * one tool, echo, gives back TEST_VALUE of the environment and the line that asked for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[1 << 16];

static void answer(long id, const char *result)
{
    printf("{\"jsonrpc\": \"2.0\", \"id\": %ld, %s}\n", id, result);
    fflush(stdout);
}

static void call(long id)
{
    static char result[2 * sizeof line];
    const char *value = getenv("TEST_VALUE");
    int n = snprintf(result, sizeof result, "\"result\": {\"content\": [{\"type\": \"text\", \"text\": \"%s: ",
                     value ? value : "-");
    for (const char *p = line; *p; p++) {
        if (strchr("\"\\", *p)) result[n++] = '\\';
        result[n++] = *p;
    }
    strcpy(result + n, "\"}]}");
    answer(id, result);
}

int main(void)
{
    puts("a greeting");
    while (fgets(line, sizeof line, stdin)) {
        const char *id = strstr(line, "\"id\":");
        line[strcspn(line, "\r\n")] = 0;
        if (!id) continue;
        long number = strtol(id + 5, NULL, 10);
        if (strstr(line, "\"initialize\""))
            answer(number, "\"result\": {\"protocolVersion\": \"2024-11-05\", \"capabilities\": {\"tools\": {}}, "
                           "\"serverInfo\": {\"name\": \"small\", \"version\": \"1\"}}");
        else if (strstr(line, "\"tools/list\""))
            answer(number, "\"result\": {\"tools\": [{\"name\": \"echo\", \"inputSchema\": {\"type\": \"object\"}}]}");
        else if (strstr(line, "\"tools/call\"")) call(number);
        else answer(number, "\"error\": {\"code\": -32601, \"message\": \"unknown method\"}");
    }
    return 0;
}
