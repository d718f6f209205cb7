// Hashes of the password `open` for tests, by the kinds that crypt(3) has.

export const HASHES = {
  bcrypt: '$2y$05$abcdefghijklmnopqrstuuHht.eX4c4.6L4U2yZy2dnIc7O6f3QYO',
  sha256: '$5$abcd$fx5zb4bSMQ0LtI8v.P8Q6GTFe1GVodrRa94HcXAi000',
  sha512: '$6$abcd$LUcRp/CqX6dD1mhdl9efMRmGK7s6i4BpwgviAWO0DMwsCybA7kHCIpRNdrq0P.PrU6nnxisP2S16GMTEoMcq8.',
} as const;

/** Hashes of the same password, which HAProxy must not be given. */
export const OTHER_HASHES = {
  'MD5 of Apache': '$apr1$abcd$BcHDpiCJeQXgq5H5tubh.0',
  MD5: '$1$abcd$jkkV.y6Co7jOQZK67vkJA0',
  'many rounds':
    '$6$rounds=200000$abcd$3.L7TheAinXaRbF0ERqHyLblC37cahROrkBp2unRX6OuZehvUvqabTDm/4hsR341f0sbL9C0F1aBi6qBAJADH0',
  'a high cost': '$2y$12$abcdefghijklmnopqrstuuHht.eX4c4.6L4U2yZy2dnIc7O6f3QYO',
  'SHA-1': '{SHA}3Zs5ffwMYKSKMGIpD3zUSWHv0Mg=',
  'plain text': 'open',
  'a quote': "$5$abcd$fx5zb4bSMQ0LtI8v.P8Q6GTFe1GVodrRa94HcXAi00'",
  'a second line': '$5$abcd$fx5zb4bSMQ0LtI8v.P8Q6GTFe1GVodrRa94HcXAi000\nbackend x',
} as const;

/** The header of a client. */
export function basic(user: string, password: string): Readonly<Record<'authorization', string>> {
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` };
}
