import { connect, createServer } from 'node:net'
import process from 'node:process'

const [, , port, devicePort] = process.argv
const server = createServer({ noDelay: true }, (client) => {
  const device = connect({ port: Number(devicePort), host: '127.0.0.1', noDelay: true })
  client.on('data', (chunk) => device.write(chunk))
  device.on('data', (chunk) => client.write(chunk))
  client.on('close', () => device.destroy())
  device.on('close', () => client.destroy())
  client.on('error', () => device.destroy())
  device.on('error', () => client.destroy())
})
server.listen(Number(port), '127.0.0.1')
