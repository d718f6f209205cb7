import test from 'ava';
import {
  askedProfile,
  GRPC_PROFILE,
  GRPC_TLS_PROFILE,
  HTTP_PROFILE,
  poolProfile,
  TCP_PROFILE,
  TLS_PROFILE,
  withCertificate,
  withHash,
  withPersistence,
  withRetry,
} from '../../../../agent/translate/pool/pool-profile.ts';

const PLAIN = { isTls: false, isSticky: false, isHashed: false, isAsked: false, retry: undefined };
const TLS = { ...PLAIN, isTls: true };

for (const [profile, expected] of [
  [HTTP_PROFILE, { mode: 'http', httpVersion: '1.1', ...PLAIN }],
  [GRPC_PROFILE, { mode: 'http', httpVersion: '2', ...PLAIN }],
  [TLS_PROFILE, { mode: 'http', httpVersion: '1.1', ...TLS }],
  [GRPC_TLS_PROFILE, { mode: 'http', httpVersion: '2', ...TLS }],
  [TCP_PROFILE, { mode: 'tcp', httpVersion: '1.1', ...PLAIN }],
] as const) {
  test(`Profile "${profile}" of a pool, alone, with persistence and with a certificate`, (t) => {
    t.deepEqual(poolProfile(profile), { ...expected, retry: undefined });
    t.deepEqual(poolProfile(withPersistence(profile)), { ...expected, retry: undefined, isSticky: true });
    t.deepEqual(poolProfile(withCertificate('default/edge', profile)), expected);
    t.deepEqual(poolProfile(withCertificate('default/edge', withPersistence(profile))), {
      ...expected,
      isSticky: true,
    });
    t.deepEqual(poolProfile(withHash(profile)), { ...expected, isHashed: true });
    const retry = { attempts: 2, codes: [502] };
    const all = { ...expected, isSticky: true, isHashed: true, retry };
    t.deepEqual(poolProfile(withPersistence(withHash(withRetry(retry, profile)))), all);
    t.deepEqual(poolProfile(askedProfile(withPersistence(withHash(withRetry(retry, profile))))), {
      ...expected,
      isAsked: true,
      retry: { attempts: 2, codes: [500, 502, 503, 504] },
    });
    const certified = withCertificate('default/edge', profile);
    t.is(askedProfile(certified), withCertificate('default/edge', askedProfile(profile)));
  });
}
