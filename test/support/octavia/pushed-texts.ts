// Texts as Octavia's templates write them, for tests that need no Octavia: test/support/octavia/render-haproxy.py has the rest.

export interface TextMember {
  readonly name: string;
  readonly address?: string;
  readonly port?: number;
  readonly weight?: number;
  /** Behind the weight: `check inter 1s fall 3 rise 2`. */
  readonly words?: string;
}

export interface TextOptions {
  readonly members?: readonly TextMember[];
  readonly balance?: string;
  /** Lines of the backend before `option allbackups`. */
  readonly backendLines?: readonly string[];
  readonly frontendLines?: readonly string[];
  readonly globalLines?: readonly string[];
  readonly bind?: string;
  readonly base?: string;
  readonly mode?: string;
}

export const LISTENER = '10111111-1111-4111-8111-111111111111';
export const POOL = '20222222-2222-4222-8222-222222222222';
export const BACKEND = `${POOL}:${LISTENER}`;

export function textOf({
  members = [{ name: 'm1' }],
  balance = 'roundrobin',
  backendLines = [],
  frontendLines = [],
  globalLines = [],
  bind = '10.0.0.2:80',
  base = '/var/lib/octavia',
  mode = 'http',
}: TextOptions = {}): string {
  return `# Configuration for loadbalancer lb
global
    daemon
    user nobody
    log ${base}/log.sock local0
    stats socket ${base}/lb.sock mode 0666 level user
    server-state-file ${base}/lb/servers-state
    maxconn 500
${indented(globalLines)}
defaults
    no log
    retries 3
    option redispatch

frontend ${LISTENER}
    maxconn 500
    bind ${bind}
    mode ${mode}
${indented(frontendLines)}    default_backend ${BACKEND}
    timeout client 50000

backend ${BACKEND}
    mode ${mode}
    balance ${balance}
${indented(backendLines)}    option allbackups
    timeout connect 5000
    timeout server 50000
${indented(members.map(serverLine))}
`;
}

function serverLine({ name, address = '10.0.0.9', port = 80, weight = 1, words = '' }: TextMember): string {
  return `server ${name} ${address}:${port} weight ${weight} ${words}`.trimEnd();
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `    ${line}\n`).join('');
}
