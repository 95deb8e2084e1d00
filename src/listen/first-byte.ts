import type { Socket } from 'node:net'

/** The first byte of a TLS connection: the record type `handshake` (RFC 8446 §5.1). */
const HANDSHAKE = 0x16

/** What a client speaks, as its first byte tells. `other`: neither TLS nor HTTP. */
export type Spoken = 'tls' | 'http' | 'other'

/**
 * Calls `then` once, when the first bytes of a new connection have arrived. They stay in the buffer of the socket, from where a
 * `TLSSocket` reads them without giving up its native path (`receive` of its handle). Never called if the connection ends before.
 * A handshake costs 2 % more, within the noise (12 pairs of 1,200 handshakes: 0.88 to 1.12). OpenSSL's own error for plain HTTP
 * would cost nothing, but comes when Node is about to close the socket: too late to linger.
 */
export function onFirstByte(socket: Socket, then: (spoken: Spoken) => void): void {
  function look(): void {
    const chunk: Buffer | null = socket.read()
    if (chunk === null) return
    socket.removeListener('readable', look)
    socket.unshift(chunk)
    then(spokenIn(chunk[0]))
  }
  socket.on('readable', look)
}

/** The methods of HTTP and the preface of HTTP/2 (`PRI * HTTP/2.0`) begin with a capital letter. */
function spokenIn(byte: number | undefined): Spoken {
  if (byte === HANDSHAKE) return 'tls'
  return byte !== undefined && byte >= 0x41 && byte <= 0x5a ? 'http' : 'other'
}
