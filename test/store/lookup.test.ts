import { once } from 'node:events'
import net from 'node:net'
import { expect, it } from 'vitest'
import { createLookup } from '../../src/fleet/connection.ts'

it('H135 a name is asked for once at a time, however many attempts there are to connect', async () => {
  let asked = 0
  const answer = Promise.withResolvers<{ address: string; family: number }[]>()
  const lookup = createLookup(() => {
    asked += 1
    return answer.promise
  })
  const server = net.createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const sockets = [true, false, true].map((autoSelectFamily) =>
    net.connect({ host: 'store.example', port, lookup, autoSelectFamily }),
  )
  const connected = sockets.map((socket) => once(socket, 'connect'))
  answer.resolve([{ address: '127.0.0.1', family: 4 }])
  await Promise.all(connected)
  expect(asked).toBe(1)
  const again = net.connect({ host: 'store.example', port, lookup })
  await once(again, 'connect')
  expect(asked).toBe(2)
  for (const socket of [...sockets, again]) socket.destroy()
  server.close()
})

it('a name without an address fails every attempt', async () => {
  const lookup = createLookup(() => Promise.reject(new Error('getaddrinfo ENOTFOUND store.example')))
  const socket = net.connect({ host: 'store.example', port: 1, lookup })
  const [error] = await once(socket, 'error')
  expect(error.message).toBe('getaddrinfo ENOTFOUND store.example')
})
