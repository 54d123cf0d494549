/* Addresses that others can be sent to by name: those of the public Internet alone. */
#ifndef PERIDOT_COMMAND_SERVE_ADDRESS_H
#define PERIDOT_COMMAND_SERVE_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

/* False for an address of this machine, of a private, shared or link-local network, for multicast, and for what is
 * reserved or only embeds such an IPv4 address; and for what is no address of the Internet at all. */
bool serve_address_is_public(const struct sockaddr *address);

#endif
