import { Agent, createServer } from 'node:http'
import process from 'node:process'
import { createProxyServer } from 'http-proxy-3'

const [, , port, devicePort] = process.argv
const agent = new Agent({ keepAlive: true, maxSockets: 256, scheduling: 'lifo' })
const proxy = createProxyServer({ target: `http://127.0.0.1:${devicePort}`, agent })
proxy.on('error', (_error, _req, res) => res.destroy())
createServer((req, res) => proxy.web(req, res)).listen(Number(port), '127.0.0.1')
