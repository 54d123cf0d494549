/* What addresses are: of the public Internet, to which alone others can be sent by name, or of this machine. */
#ifndef PERIDOT_COMMAND_SERVE_ADDRESS_H
#define PERIDOT_COMMAND_SERVE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

struct sockaddr;

/* False for an address of this machine, of a private, shared or link-local network, for multicast, and for what is
 * reserved or only embeds such an IPv4 address; and for what is no address of the Internet at all. */
bool serve_address_is_public(const struct sockaddr *address);
/* An address of this machine that no other can reach: 127.0.0.0/8, also as ::ffff:127.0.0.1, and ::1. */
bool serve_address_is_loopback(const struct sockaddr *address);
/* Tells those apart who ask: the address of IPv4, the first half of one of IPv6, which a household has for itself; 0
 * for any other. */
uint64_t serve_address_number(const struct sockaddr *address);

#endif
