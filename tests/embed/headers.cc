/* The headers are C++ as well. */
#include <peridot_tools.h>

#include <cstdio>

int main()
{
    std::puts(peridot_version());
    return 0;
}
