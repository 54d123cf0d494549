/* What addresses are: of the public Internet, to which alone others can be sent by name, or of this machine. */
#include "pictures.h"
#include "../../base/base.h"

#include <string.h>
#ifdef _WIN32
#include <ws2tcpip.h>
#else
#include <netinet/in.h>
#endif

static const unsigned char mapped[12] = {[10] = 0xff, 0xff};   /* ::ffff:0:0/96: an IPv4 address in IPv6 */

/* Of IANA's registries of special-purpose addresses. */
static bool is_public_four(const unsigned char at[4])
{
    static const struct {
        unsigned char net[4];
        unsigned bits;
    } others[] = {{{0}, 8},           {{10}, 8},          {{100, 64}, 10},     {{127}, 8},          {{169, 254}, 16},
                  {{172, 16}, 12},    {{192, 0, 0}, 24},  {{192, 0, 2}, 24},   {{192, 88, 99}, 24}, {{192, 168}, 16},
                  {{198, 18}, 15},    {{198, 51, 100}, 24}, {{203, 0, 113}, 24}, {{224}, 3}};
    uint32_t address = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    for (size_t i = 0; i < PD_COUNT(others); i++) {
        const unsigned char *n = others[i].net;
        uint32_t net = (uint32_t)n[0] << 24 | (uint32_t)n[1] << 16 | (uint32_t)n[2] << 8 | n[3];
        if ((address ^ net) >> (32 - others[i].bits) == 0) return false;
    }
    return true;
}

/* 2000::/3 is what is given out, less 2001::/23 (protocols, as Teredo), and 2001:db8::/32 and 3fff::/20
 * (documentation). */
static bool is_public_six(const unsigned char at[16])
{
    static const unsigned char nat64[12] = {0, 0x64, 0xff, 0x9b};
    if (memcmp(at, mapped, sizeof mapped) == 0 || memcmp(at, nat64, sizeof nat64) == 0) return is_public_four(at + 12);
    if (at[0] == 0x20 && at[1] == 0x02) return is_public_four(at + 2);   /* 6to4 */
    bool special = (at[0] == 0x20 && at[1] == 0x01 && (at[2] < 2 || (at[2] == 0x0d && at[3] == 0xb8))) ||
                   (at[0] == 0x3f && at[1] == 0xff && at[2] < 0x10);
    return at[0] >> 5 == 1 && !special;
}

static const unsigned char *find_four(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) return (const unsigned char *)&((const struct sockaddr_in *)a)->sin_addr;
    if (a->sa_family != AF_INET6) return NULL;
    const unsigned char *six = (const unsigned char *)&((const struct sockaddr_in6 *)a)->sin6_addr;
    return memcmp(six, mapped, sizeof mapped) == 0 ? six + sizeof mapped : NULL;
}

bool serve_address_is_loopback(const struct sockaddr *a)
{
    static const unsigned char one[16] = {[15] = 1};
    const unsigned char *four = find_four(a);
    if (four) return four[0] == 127;
    return a->sa_family == AF_INET6 && memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, one, sizeof one) == 0;
}

bool serve_address_is_public(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return is_public_four((const unsigned char *)&((const struct sockaddr_in *)a)->sin_addr);
    return a->sa_family == AF_INET6 &&
           is_public_six((const unsigned char *)&((const struct sockaddr_in6 *)a)->sin6_addr);
}

uint64_t serve_address_number(const struct sockaddr *a)
{
    const unsigned char *at = find_four(a);
    uint64_t number = 0;
    size_t n = at ? 4 : 8;
    if (!at && a->sa_family == AF_INET6) at = (const unsigned char *)&((const struct sockaddr_in6 *)a)->sin6_addr;
    for (size_t i = 0; at && i < n; i++) number = number << 8 | at[i];
    return number;
}
