import { describe } from 'vitest'

/** How a client reaches the sidecar. */
export type Transport = 'http1' | 'tls' | 'h2'

export const transports: readonly Transport[] = ['http1', 'tls', 'h2']

const titles: Readonly<Record<Transport, string>> = {
  http1: 'cleartext HTTP/1.1',
  tls: 'HTTP/1.1 over TLS',
  h2: 'HTTP/2 over TLS',
}

/** Declares the same tests once for each transport, or for those in `only`. */
export function describeTransports(
  name: string,
  block: (transport: Transport) => void,
  only: readonly Transport[] = transports,
): void {
  for (const transport of only) describe(`${name}, ${titles[transport]}`, () => block(transport))
}

/**
 * The same for a decision on a whole message, in cleartext HTTP/1.1 and HTTP/2 over TLS: HTTP/1.1 over TLS differs only in how bytes
 * arrive and connections end.
 */
export function describeProtocols(name: string, block: (transport: Transport) => void): void {
  describeTransports(name, block, ['http1', 'h2'])
}

/** All rows over cleartext HTTP/1.1, and the first one over each other transport, where it shows that the same function is asked. */
export function rowsOver<Row>(transport: Transport, rows: readonly Row[]): readonly Row[] {
  return transport === 'http1' ? rows : rows.slice(0, 1)
}
