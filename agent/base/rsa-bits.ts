// The lengths of RSA keys that certificates may have, in bits: HAProxy's default security level refuses shorter ones, and
// OpenSSL longer ones.

export const MIN_RSA_BITS = 2048;
export const MAX_RSA_BITS = 16_384;
