import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import process from 'node:process'
import { createServer } from 'node:tls'

/**
 * `node tls-relay-server.mjs PORT DEVICE-PORT CERT KEY`: a relay of Node's own TLS and TCP that reads nothing of what passes: the minimum cost of
 * a body over TLS in Node.
 */
const [, , port, devicePort, cert = '', key = ''] = process.argv
const pair = { cert: readFileSync(cert), key: readFileSync(key) }
createServer({ ...pair, ALPNProtocols: ['http/1.1'] }, (client) => {
  const device = connect({ port: Number(devicePort), host: '127.0.0.1' })
  for (const socket of [client, device]) socket.on('error', () => {})
  client.pipe(device).pipe(client)
}).listen(Number(port), '127.0.0.1')
