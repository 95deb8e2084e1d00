import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { closeLater } from './cleanup.ts'

/** Both ends of a TCP connection; `to` reads nothing until the test resumes it. */
export async function socketPair(): Promise<{ readonly from: Socket; readonly to: Socket }> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const from = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1')
  const [to] = (await once(server, 'connection')) as [Socket]
  closeLater(() => {
    from.destroy()
    to.destroy()
    server.close()
  })
  return { from, to }
}
