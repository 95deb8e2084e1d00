import { Agent } from 'node:http'
import type { Duplex } from 'node:stream'
import { createProxyServer, type ProxyServer } from 'http-proxy-3'

/**
 * A proxy for one request, so that its events are about that request alone. It listens on nothing and holds nothing.
 */
export function createProxy(): ProxyServer {
  const proxy = createProxyServer()
  // It repeats errors of the client's connection, which has listeners of its own; unheard they would end the process.
  proxy.on('error', () => {})
  return proxy
}

/** Has Node use a connection that is there already. */
export function agentFor(connection: Duplex): Agent {
  return Object.assign(new Agent({ keepAlive: false }), { createConnection: () => connection })
}
