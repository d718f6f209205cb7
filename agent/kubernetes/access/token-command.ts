// The token that a command of the operator's prints, for the auth providers `azure` and `gcp` of a kubeconfig, as
// kubectl had them until 1.26: `cmd-path` and `cmd-args`, `token-key` and `expiry-key`.
// Starts the command without a shell, with a deadline.

import { messageOf } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { isMapping } from '../../base/validate.ts';
import { runCommand } from '../../host/run-command.ts';
import { CredentialFault } from './credential-fault.ts';
import type { Environment } from './proxy.ts';

export interface PrintedToken {
  readonly token: string;
  /** As it was printed; '' where it was not. */
  readonly expiry: string;
}

/** `config`: of the auth provider. Errors: CredentialFault. */
export async function printedToken(config: Environment, timeoutMs: number): Promise<PrintedToken> {
  const { 'cmd-path': program = '', 'cmd-args': args = '' } = config;
  if (program === '') {
    throw new CredentialFault(
      'its token is over, and no command is named that gets another: use a credential plugin ("exec")',
    );
  }
  const named = `the command ${quote(program)}`;
  const words = args.split(/\s+/).filter((word) => word !== '');
  const { exitCode, stdout } = await runCommand(program, words, { timeout: timeoutMs }).catch((error) => {
    throw new CredentialFault(`${named} gives no token: ${messageOf(error).split(': ')[0]}`);
  });
  if (exitCode !== 0) throw new CredentialFault(`${named} failed with status ${exitCode}`);
  const printed = jsonOf(stdout);
  const token = at(printed, config['token-key'] ?? '{.access_token}');
  const expiry = at(printed, config['expiry-key'] ?? '{.token_expiry}');
  if (typeof token !== 'string' || token === '') throw new CredentialFault(`${named} printed no token`);
  return { token, expiry: typeof expiry === 'string' || typeof expiry === 'number' ? String(expiry) : '' };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `path`: of kubectl's JSONPath what such commands need, `{.credential.access_token}`. */
function at(value: unknown, path: string): unknown {
  const names = /^\{((?:\.[\w-]+)+)\}$/.exec(path)?.[1]?.slice(1).split('.') ?? [];
  return names.length === 0
    ? undefined
    : names.reduce((inner, name) => (isMapping(inner) ? inner[name] : undefined), value);
}
