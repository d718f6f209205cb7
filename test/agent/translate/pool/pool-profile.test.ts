import test from 'ava';
import {
  GRPC_PROFILE,
  GRPC_TLS_PROFILE,
  HTTP_PROFILE,
  poolProfile,
  TCP_PROFILE,
  TLS_PROFILE,
  withCertificate,
  withPersistence,
} from '../../../../agent/translate/pool/pool-profile.ts';

for (const [profile, expected] of [
  [HTTP_PROFILE, { mode: 'http', httpVersion: '1.1', isTls: false, isSticky: false, retry: undefined }],
  [GRPC_PROFILE, { mode: 'http', httpVersion: '2', isTls: false, isSticky: false, retry: undefined }],
  [TLS_PROFILE, { mode: 'http', httpVersion: '1.1', isTls: true, isSticky: false, retry: undefined }],
  [GRPC_TLS_PROFILE, { mode: 'http', httpVersion: '2', isTls: true, isSticky: false, retry: undefined }],
  [TCP_PROFILE, { mode: 'tcp', httpVersion: '1.1', isTls: false, isSticky: false, retry: undefined }],
] as const) {
  test(`Profile "${profile}" of a pool, alone, with persistence and with a certificate`, (t) => {
    t.deepEqual(poolProfile(profile), { ...expected, retry: undefined });
    t.deepEqual(poolProfile(withPersistence(profile)), { ...expected, retry: undefined, isSticky: true });
    t.deepEqual(poolProfile(withCertificate('default/edge', profile)), expected);
    t.deepEqual(poolProfile(withCertificate('default/edge', withPersistence(profile))), {
      ...expected,
      isSticky: true,
    });
  });
}
