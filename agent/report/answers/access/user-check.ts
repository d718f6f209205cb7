// Whether a client's password lets it in (RFC 7617), by the users that the listener has. Pure.

import { quote } from '../../../base/quote.ts';
import { asked, type CheckResult, passed, refused, type Way } from './check.ts';

const ANSWER = 'status 401';

export function user({ listener, client, request, proofs }: Way): CheckResult | undefined {
  const auth = request?.rule?.auth;
  if (auth === undefined) return undefined;
  const { secret } = auth;
  const list = listener.userLists?.find(({ name }) => secret !== '' && name === `secret ${secret}`);
  if (list === undefined) return refused('no users can be used', 'status 403');
  const given = client.headers?.get('authorization');
  if (given !== undefined) {
    const found = credentialsIn(given);
    if (typeof found === 'string') return refused(found, ANSWER);
    const who = `user ${quote(found.name)}`;
    if (!proofs.knowsUser(list, found.name)) return refused(`Secret ${secret} has no ${who}`, ANSWER);
    return proofs.isPassword(list, found.name, found.password)
      ? passed(`with the password of ${who}`)
      : refused(`it is not the password of ${who}`, ANSWER);
  }
  if (client.user === '') return asked(`with the password of a user of Secret ${secret}`, ANSWER);
  const who = `user ${quote(client.user)}`;
  return proofs.knowsUser(list, client.user)
    ? passed(`with the password of ${who}`)
    : refused(`Secret ${secret} has no ${who}`, ANSWER);
}

interface Credentials {
  readonly name: string;
  readonly password: string;
}

/** Or why there are none. */
function credentialsIn(headers: readonly string[]): Credentials | string {
  const [header = '', ...others] = headers;
  if (others.length > 0) return 'the request has several headers Authorization';
  const [, encoded] = /^basic +(\S+)/i.exec(header) ?? [];
  if (encoded === undefined) return 'the header Authorization has no password (Basic)';
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon < 0) return 'the header Authorization has no password (Basic)';
  // HAProxy reads up to a NUL.
  const [name = '', password = ''] = [text.slice(0, colon), text.slice(colon + 1)].map(
    (part) => part.split('\0', 1)[0],
  );
  return { name, password };
}
