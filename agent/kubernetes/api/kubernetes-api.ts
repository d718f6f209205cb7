// The requests to the API server and its answers: users of the API depend on these interfaces, not on the client.

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/api/v1/services`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default `application/json`; a PATCH needs one, such as `application/merge-patch+json`. */
  readonly contentType?: string;
  /** Default `application/json`. */
  readonly accept?: string;
  /** Default 15 s: for the whole answer, and for a stream until its body begins. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface ApiResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The value of JSON, otherwise the text. */
  readonly body: unknown;
}

export interface ApiStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Read it, or abort the request: otherwise its connection stays in use. Errors: API_UNREACHABLE if it breaks off. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Answers whose body is read as it arrives. */
export interface ApiStreams {
  /** Any HTTP status is an answer. Errors: API_UNREACHABLE, API_CREDENTIALS. */
  open(request: ApiRequest): Promise<ApiStream>;
}

export interface KubernetesApi {
  /** Any HTTP status is a response. Errors: API_UNREACHABLE, API_CREDENTIALS. */
  request(request: ApiRequest): Promise<ApiResponse>;
  close(): void;
}
