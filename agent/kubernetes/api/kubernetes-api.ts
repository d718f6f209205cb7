// What may be asked of the API server, and how it answers: whoever asks knows this, and not who carries it there.

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/api/v1/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Of a body; a PATCH needs one: `application/apply-patch+yaml`, `application/merge-patch+json` and so on. */
  readonly contentType?: string;
  /** Milliseconds, default 15 s: for the whole answer, and for a stream until its body begins. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface ApiResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of JSON the value, otherwise the text. */
  readonly body: unknown;
}

export interface ApiStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Read it, or abort the request: otherwise its connection stays taken. Errors: API_UNREACHABLE where it breaks off. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The body of an answer as it comes. */
export interface ApiStreams {
  /** Any HTTP status is an answer. Errors: API_UNREACHABLE, API_CREDENTIALS. */
  open(request: ApiRequest): Promise<ApiStream>;
}

export interface KubernetesApi {
  /** Any HTTP status is a response; what kept an answer from coming is an error: API_UNREACHABLE, API_CREDENTIALS. */
  request(request: ApiRequest): Promise<ApiResponse>;
  /** A watch: the status, then the body's lines as they come. */
  stream(request: ApiRequest): Promise<{
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly lines: AsyncIterable<string>;
  }>;
  close(): void;
}
