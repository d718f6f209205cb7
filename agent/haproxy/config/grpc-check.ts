// The probe of gRPC's health checking protocol as bytes: the client's side of an HTTP/2 connection, and the answer of a
// healthy server. HAProxy's HTTP checks cannot send the zero bytes at the begin of each gRPC message, so that these go by
// `tcp-check send-binary`. Pure.
// Formats: RFC 9113 (frames), RFC 7541 (headers), grpc/doc/PROTOCOL-HTTP2.md and health-checking.md of grpc/grpc.

import type { HealthMonitor } from '../../model/load-balancer.ts';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const PATH = '/grpc.health.v1.Health/Check';
const [DATA, HEADERS, SETTINGS] = [0, 1, 4];
const [END_STREAM, END_HEADERS] = [1, 4];
const STREAM = 1;
const SERVING = 1;

/** In hexadecimal: preface, SETTINGS, and one request on stream 1, with its message. */
export function grpcQuestion({ host, grpcService }: Pick<HealthMonitor, 'host' | 'grpcService'>): string {
  return Buffer.concat([
    Buffer.from(PREFACE),
    frame(SETTINGS, 0, 0, Buffer.alloc(0)),
    frame(HEADERS, END_HEADERS, STREAM, headers(host || 'localhost')),
    frame(DATA, END_STREAM, STREAM, message(grpcService === '' ? Buffer.alloc(0) : field(1, grpcService))),
  ]).toString('hex');
}

/** In hexadecimal, a part of the answer: the end of a DATA frame's header, and the message SERVING. */
export const grpcExpectation = Buffer.concat([
  stream(STREAM),
  message(Buffer.from([0x08, SERVING])),
]).toString('hex');

/** RFC 7541: 0x80 with an index is an entry of the static table; 0x00 with an index is a name whose value follows. */
function headers(authority: string): Buffer {
  const [POST, HTTP, AUTHORITY, PATH_NAME, CONTENT_TYPE] = [3, 6, 1, 4, 31];
  return Buffer.concat([
    Buffer.from([0x80 | POST, 0x80 | HTTP]),
    integer(PATH_NAME, 4),
    text(PATH),
    integer(AUTHORITY, 4),
    text(authority),
    integer(CONTENT_TYPE, 4),
    text('application/grpc'),
    integer(0, 4),
    text('te'),
    text('trailers'),
  ]);
}

function text(value: string): Buffer {
  return Buffer.concat([integer(value.length, 7), Buffer.from(value)]);
}

/** RFC 7541, section 5.1, after zero bits. */
function integer(value: number, bits: number): Buffer {
  const most = 2 ** bits - 1;
  if (value < most) return Buffer.from([value]);
  return Buffer.from([most, ...septets(value - most)]);
}

/** Least significant first, as in HPACK and protobuf. */
function septets(value: number): readonly number[] {
  return value < 128 ? [value] : [128 | (value % 128), ...septets(Math.floor(value / 128))];
}

/** A text field of a protobuf message. */
function field(number: number, value: string): Buffer {
  return Buffer.from([(number << 3) | 2, ...septets(value.length), ...Buffer.from(value)]);
}

/** An uncompressed message with its length. */
function message(bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function frame(type: number, flags: number, id: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  return Buffer.concat([head, stream(id), payload]);
}

function stream(id: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(id);
  return bytes;
}
