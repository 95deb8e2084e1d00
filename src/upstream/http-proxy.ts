import { createProxyServer, type ProxyServer, type ServerOptions } from 'http-proxy-3'

export type { ServerOptions as ProxyOptions }

/**
 * A proxy for one request, so that its events are about that request alone. It listens on nothing and holds nothing.
 */
export function createProxy(): ProxyServer {
  const proxy = createProxyServer()
  // It repeats errors of the client's connection, which has listeners of its own; unheard they would end the process.
  proxy.on('error', () => {})
  return proxy
}
