// A connection to a unix socket whose `data` are texts. Read into one buffer and decoded there: a stream by itself makes
// a buffer of 64 KB for each few bytes that arrive, which costs more than all else that is done with a short answer.

import { connect, type Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';

/** Bytes that are read at once. */
const READ = 64 * 1024;

/** Not connected yet; what arrives before anybody listens for `data` is lost. Texts are UTF-8, cut between characters. */
export function textSocket(path: string): Socket {
  const decoder = new StringDecoder('utf8');
  const buffer = Buffer.allocUnsafeSlow(READ);
  const callback = (length: number): boolean => {
    socket.emit('data', decoder.write(buffer.subarray(0, length)));
    return true;
  };
  const socket: Socket = connect({ path, onread: { buffer, callback } });
  return socket;
}
