import { Agent, createServer } from 'node:http'
import process from 'node:process'
import { createProxyServer } from 'http-proxy-3'

const [, , port, devicePort, how] = process.argv
const agent =
  how === 'keep-alive' ? new Agent({ keepAlive: true, maxSockets: 256, scheduling: 'lifo' }) : undefined
const proxy = createProxyServer({ target: `http://127.0.0.1:${devicePort}`, agent })
proxy.on('error', (_error, _req, res) => res.destroy())
createServer((req, res) => proxy.web(req, res)).listen(Number(port), '127.0.0.1')
