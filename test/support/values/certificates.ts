// Certificates of an authority of the tests, valid for a hundred years, for tests that have no openssl. Their keys are for nothing
// else.

import {
  type ConfigMap,
  certificateSchema,
  configMapOf,
  type Secret,
  secretOf,
} from '../../../agent/kubernetes/certificate-objects.ts';

export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

/** Issued by `AUTHORITY`, for web.example. */
export const WEB: PemPair = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBljCCATygAwIBAgIUdNm+4ckpUytK1Biu4nN0sKSUjPAwCgYIKoZIzj0EAwIw
IjEgMB4GA1UEAwwXSGVhZGdhdGUgdGVzdCBhdXRob3JpdHkwIBcNMjYxMTI2MDUw
NDMxWhgPMjEyNjExMDIwNTA0MzFaMBYxFDASBgNVBAMMC3dlYi5leGFtcGxlMFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtqsGQHJwbouhM+P9KX3631KK18Y+Aevy
sjiK2M3Hx1XUS/UNjS6d1aOT40MTotRsMKjlqSzff4qifVadqr/hG6NaMFgwFgYD
VR0RBA8wDYILd2ViLmV4YW1wbGUwHQYDVR0OBBYEFKjRqliV9kUCeUtqP3wXKrpT
r+TYMB8GA1UdIwQYMBaAFAWeYUuZVOof1dP9ZxFAWEu0s1G4MAoGCCqGSM49BAMC
A0gAMEUCIQD40Mogm0BC+Sf8QQstsFkZSC9IN/eORKFoMYJmTUOMHQIgWoPSUVC3
4+xvYtaVHbDgsIZBxiWUuvQtSLH6XZG5gu0=
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+40eBlNepwrx6oPg
Xw48mjCTQ87xNZKOWjrhgWL1WOihRANCAAS2qwZAcnBui6Ez4/0pffrfUorXxj4B
6/KyOIrYzcfHVdRL9Q2NLp3Vo5PjQxOi1GwwqOWpLN9/iqJ9Vp2qv+Eb
-----END PRIVATE KEY-----
`,
};

/** Issued by `AUTHORITY`, for api.example. */
export const API: PemPair = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBlzCCATygAwIBAgIUdNm+4ckpUytK1Biu4nN0sKSUjPEwCgYIKoZIzj0EAwIw
IjEgMB4GA1UEAwwXSGVhZGdhdGUgdGVzdCBhdXRob3JpdHkwIBcNMjYxMTI2MDUw
NDMxWhgPMjEyNjExMDIwNTA0MzFaMBYxFDASBgNVBAMMC2FwaS5leGFtcGxlMFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAETTN0Gk0yqRpZCOPm7tb/Wapj32lTBcvi
YjPwwMLWTvw6/kiqrLlW9B8ccOwSeP+RBQcy4E8GpP3oalJnF8+nVqNaMFgwFgYD
VR0RBA8wDYILYXBpLmV4YW1wbGUwHQYDVR0OBBYEFOoSJ957a6uKXZZ2uTdyjYJ/
c2FBMB8GA1UdIwQYMBaAFAWeYUuZVOof1dP9ZxFAWEu0s1G4MAoGCCqGSM49BAMC
A0kAMEYCIQDKpdZFy2e0BXvfZmIH04khTGuEXesDYpKf6nrax/C1mAIhANggf1Dr
Qo8lFGLR2FYrDOiZ0IclZ1tAtTCcxotDFYha
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg7S/fR2ztFeSwxvIb
kMTKx60XaHkD5i+PlhGvUNdM6L+hRANCAARNM3QaTTKpGlkI4+bu1v9ZqmPfaVMF
y+JiM/DAwtZO/Dr+SKqsuVb0Hxxw7BJ4/5EFBzLgTwak/ehqUmcXz6dW
-----END PRIVATE KEY-----
`,
};

/** With an RSA key of 1024 bits. */
export const SMALL: PemPair = {
  cert: `-----BEGIN CERTIFICATE-----
MIICDjCCAXegAwIBAgIUcTBljHGWbeVMFWtgILJE48DBk+kwDQYJKoZIhvcNAQEL
BQAwGDEWMBQGA1UEAwwNc21hbGwuZXhhbXBsZTAgFw0yNjExMjYwNTA0MzFaGA8y
MTI2MTEwMjA1MDQzMVowGDEWMBQGA1UEAwwNc21hbGwuZXhhbXBsZTCBnzANBgkq
hkiG9w0BAQEFAAOBjQAwgYkCgYEAzuDBDmBkNApXx2F6jKhv035pnLCzrMrB01Ax
OcUKFs3yiNr4gg1DeopJMThNpXOvbS+5ZBJYv5mHfdbP+ozzHS2Xbu/KkYmsTciz
BZ7wc46XhrqvIfsR9BT3BikaY4Gntp76nMSc8tXmYw6+M0euQYxP+R2Vt1/Xt1z/
p3MckgsCAwEAAaNTMFEwHQYDVR0OBBYEFGWblLEgwXvwDtYtgh5VM6JB6iUTMB8G
A1UdIwQYMBaAFGWblLEgwXvwDtYtgh5VM6JB6iUTMA8GA1UdEwEB/wQFMAMBAf8w
DQYJKoZIhvcNAQELBQADgYEAY0sAjP7Hy+pbwkoth9ZIw1rGGrcsV7/Jog7dtlT9
lfeLeQWpJs+2fEfTyJVc3FtuBggPm+WEh7/MorsJMZflSpGxxctBCnX0MulR2G5J
WAfdDruEyk95ZjTKYsouP0yKQ9eolS+LUavlR2uCyYJTSYnR9IOLAIpkWyrCNXm6
LGI=
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBAM7gwQ5gZDQKV8dh
eoyob9N+aZyws6zKwdNQMTnFChbN8oja+IINQ3qKSTE4TaVzr20vuWQSWL+Zh33W
z/qM8x0tl27vypGJrE3IswWe8HOOl4a6ryH7EfQU9wYpGmOBp7ae+pzEnPLV5mMO
vjNHrkGMT/kdlbdf17dc/6dzHJILAgMBAAECgYEAk9hjn9abReWuXbr4TdWCNW8+
ItDVV0N/yXih9VsvnqSIE+4Jc0fvVX/GVvqZ4wgN8sYMg8voyOT7w57k+3YHtyVw
7dm0LTlL3BfUt3DIbOnGne3StmysI4dgAvxVF7MuSQ5Ll41wAL30lKdBvQfGzWVK
wqmh/eisbKvgvDzdN+ECQQDsyzWSSrRRIuHIjhapNL0CLwVGgXh17BP9tmUJtBnY
RYMw7xDdr5ujr2sR5AMqG/cRnXFVL/l9efkz1mVBEDSVAkEA36hfLLuUTEYNghMj
+IK6OztFi5zQoycODPUOX2/5HWyg5bj1NojdpWgJveTmRixE8oI2Vsp9yaXMMg1L
ZCxkHwJAZRhtCsQyL+HAm6tuKVeGyoPgsLVeBJqB/nP8tyPZVOh4lk+616q9vCiM
gdrjLvs5hJ+/XytYTSXiKyuBl0Gf8QJAEsNTSLNr24I8+96TM/Pzn6h3SyEat7U9
DoU4cXU5VuiYDu2XVL3iqk+yEYY0c0qfdiDKYjmWl+Ya3VAUNREsTQJBAOG4fade
J+2EBu93YG0wdK8Bd4c5T3GXfqJdM08aapHO0Qq78361j8GSsCeUFrhELSXMWmiT
AbmS9/CK7XhUYdg=
-----END PRIVATE KEY-----
`,
};

export const AUTHORITY = `-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIUTFVMMlhiWyp8SciKTIDVpI/MC3IwCgYIKoZIzj0EAwIw
IjEgMB4GA1UEAwwXSGVhZGdhdGUgdGVzdCBhdXRob3JpdHkwIBcNMjYxMTI2MDUw
NDMwWhgPMjEyNjExMDIwNTA0MzBaMCIxIDAeBgNVBAMMF0hlYWRnYXRlIHRlc3Qg
YXV0aG9yaXR5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9N62lk7yYQ6R1x09
+DC2NrSFfiSPkzZLNHpAbviAOtYXMgS4ySp5QNjjaaTxUg4XqUd2i+2BvNnEvq0A
Q17wtqNTMFEwHQYDVR0OBBYEFAWeYUuZVOof1dP9ZxFAWEu0s1G4MB8GA1UdIwQY
MBaAFAWeYUuZVOof1dP9ZxFAWEu0s1G4MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZI
zj0EAwIDSQAwRgIhANuUSU7wMkfO/toLLjW1cuD5I64yJLZIHUdpHH3HbVNiAiEA
x+CNPzN0zcPfshKlzEsb0eNfkMlHzanoA+k0rLYpOdg=
-----END CERTIFICATE-----
`;

/** Revokes nothing, and expires in 2126; of an authority of its own. */
export const CRL = `-----BEGIN X509 CRL-----
MIGqMFMCAQEwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHQ2xpZW50cxcNMjYxMTI2
MDk0MzUwWhgPMjEyNjExMDIwOTQzNTBaoA4wDDAKBgNVHRQEAwIBATAKBggqhkjO
PQQDAgNHADBEAiBa+l9s26gs7sgPQYmAG6RrEORHMCChFDjedON5SBFliwIgYbvG
tH8GIxdY20ZiRrffrx7OD0b0QMe6u2yxEwg51RM=
-----END X509 CRL-----
`;

/** Expired in February 2020. */
export const EXPIRED_CRL = `-----BEGIN X509 CRL-----
MIGoMFECAQEwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHQ2xpZW50cxcNMjAwMTAx
MDAwMDAwWhcNMjAwMjAxMDAwMDAwWqAOMAwwCgYDVR0UBAMCAQIwCgYIKoZIzj0E
AwIDRwAwRAIgLeStiH2e1jaL5urVd8JZfO3q9145afgF56YPJM1GJrkCIGGRV8I3
KR5skvuVX4ySULWjxjxxjV9ycjEZnqPz22aX
-----END X509 CRL-----
`;

/** A Secret with a certificate and key, the authority and the revocation list. */
export function secret(name: string, { cert, key }: PemPair = WEB, namespace = 'default'): Secret {
  const stringData = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': AUTHORITY, 'ca.crl': CRL };
  return secretOf(certificateSchema.parse({ metadata: { name, namespace }, stringData }));
}

/** A ConfigMap with the authority and the revocation list. */
export function configMap(name: string, namespace = 'default', crl = CRL): ConfigMap {
  const data = { 'ca.crt': AUTHORITY, 'ca.crl': crl };
  return configMapOf(certificateSchema.parse({ metadata: { name, namespace }, data }));
}
