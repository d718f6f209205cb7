// The certificate with which the REST API shows that it is this amphora. The controller replaces it every other week.

import { readFileSync } from 'node:fs';
import { HeadgateError } from '../../base/errors.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { tls } from '../../host/node-http.ts';
import type { RestSettings } from '../settings/amphora-settings.ts';

/** For createServer() and setSecureContext(). */
export interface Credentials {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly minVersion: RestSettings['minVersion'];
}

/** Errors: FILE_READ; OCTAVIA_INVALID if they cannot be used. */
export function readCredentials({ certificate, clientAuthority, minVersion }: RestSettings): Credentials {
  const pem = textOf(certificate);
  const credentials = { cert: pem, key: pem, ca: textOf(clientAuthority), minVersion };
  prove(credentials, certificate);
  return credentials;
}

/** Checks and stores `pem`, certificate and key. Errors: OCTAVIA_INVALID, FILE_WRITE; the old one then stays. */
export async function replaceCertificate(settings: RestSettings, pem: string): Promise<Credentials> {
  const { certificate, clientAuthority, minVersion } = settings;
  const credentials = { cert: pem, key: pem, ca: textOf(clientAuthority), minVersion };
  prove(credentials, 'the certificate');
  await writeAtomically(certificate, [pem]);
  return credentials;
}

function prove(credentials: Credentials, what: string): void {
  try {
    tls().createSecureContext(credentials);
  } catch (cause) {
    const message = `Cannot use ${what}: it must be a certificate and its key, both in PEM`;
    throw new HeadgateError('OCTAVIA_INVALID', message, { retry: 'never', cause });
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new HeadgateError('FILE_READ', `Cannot read "${path}"`, { retry: 'later', cause });
  }
}
