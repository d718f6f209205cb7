// The agent's one error class, for operations that failed. A user's mistake in an object is no error but a `Problem`
// (model/load-balancer.ts).

export type ErrorCode =
  | 'SETTINGS_INVALID'
  | 'USAGE'
  | 'HAPROXY_MISSING'
  | 'HAPROXY_VERSION'
  | 'HAPROXY_START'
  | 'HAPROXY_REJECTED'
  | 'HAPROXY_RELOAD'
  | 'KEEPALIVED_MISSING'
  | 'KEEPALIVED_VERSION'
  | 'KEEPALIVED_START'
  | 'KEEPALIVED_REJECTED'
  | 'KEEPALIVED_RELOAD'
  | 'BIRD_MISSING'
  | 'BIRD_VERSION'
  | 'BIRD_START'
  | 'BIRD_REJECTED'
  | 'BIRD_SOCKET'
  | 'NFT_MISSING'
  | 'NFT_FAILED'
  | 'CONNTRACKD_MISSING'
  | 'CONNTRACKD_START'
  | 'RUNTIME_CONNECT'
  | 'RUNTIME_TIMEOUT'
  | 'RUNTIME_CLOSED'
  | 'RUNTIME_TOO_LONG'
  | 'RUNTIME_TOKEN'
  | 'RUNTIME_REPLY'
  | 'FILE_WRITE'
  | 'FILE_READ'
  | 'COMMAND_FAILED'
  | 'LISTEN_FAILED'
  | 'AGENT_UNREACHABLE'
  | 'AGENT_DENIED'
  | 'AGENT_RUNNING'
  | 'QUESTION_FAILED'
  | 'ORDER_FAILED'
  | 'PAIR_CREDENTIALS'
  | 'API_UNREACHABLE'
  | 'API_CREDENTIALS'
  | 'API_REFUSED'
  | 'OCTAVIA_INVALID'
  | 'OCTAVIA_NO_INTERFACE'
  | 'OCTAVIA_EXISTS'
  | 'OCTAVIA_NOT_FOUND';

export type Retry = 'now' | 'later' | 'never';

/** docs/errors.md documents each `code`. `retry`: when a further attempt makes sense. `cause`: the underlying error. */
export class HeadgateError extends Error {
  readonly code: ErrorCode;
  readonly retry: Retry;

  constructor(code: ErrorCode, message: string, options: { retry?: Retry; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'HeadgateError';
    this.code = code;
    this.retry = options.retry ?? 'later';
  }
}

/** The message of a thrown value and those of its causes, on one line. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.message.replaceAll(/\s*\n\s*/g, '; ');
  return error.cause === undefined ? own : `${own}: ${messageOf(error.cause)}`;
}
