import { once } from 'node:events'
import type { Served, Site } from '../process/serve.ts'
import { connect } from '../support/client.ts'
import { readBody } from '../support/device.ts'
import type { Response } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'
import type { Tokens } from '../support/sidecar.ts'
import { openWebSocket, refusedWebSocket } from '../support/websocket.ts'

/** A mark that is part of every secret, and of nothing else. */
export const CANARY: string = 'cAnArYbIrD'
export const PASSWORD: string = `${CANARY}-of the grant & 100% +ä`
export const ACCOUNT: string = `${CANARY}-of the account: "x" ä`
export const FIRMWARE: string = `${CANARY}-of-the-firmware`

/** Sends valid grants, and invalid ones of every kind. `collect` gets each response. */
export async function useTokenEndpoint(
  sidecar: Served,
  collect: (response: Response) => void,
): Promise<Tokens[]> {
  const form = `grant_type=password&password=${encodeURIComponent(PASSWORD)}`
  const first = await sidecar.grant(PASSWORD)
  const rotated = (await sidecar.refresh(first.refresh_token)).json() as unknown as Tokens // C4 holds the shape
  for (const [body, request] of [
    [{ grant_type: 'password', password: `${CANARY}-wrong`, client_secret: CANARY }, {}],
    [`${form}&x=%zz`, {}],
    [`${form}&password=${CANARY}`, {}],
    [{ [CANARY]: CANARY, grant_type: CANARY }, {}],
    [{ grant_type: 'refresh_token', refresh_token: `${CANARY}-refresh` }, {}],
    [{ grant_type: 'refresh_token', refresh_token: first.access_token }, {}],
    [form, { fields: ['Content-Type', `text/plain; x=${CANARY}`] }],
    [
      form,
      {
        fields: ['Authorization', `Basic ${btoa(`app:${CANARY}`)}`],
        path: `/oauth/token?password=${CANARY}`,
      },
    ],
    [form, { method: 'PUT' }],
    [`${CANARY}`.repeat(3000), {}],
    [{ token: rotated.access_token }, { path: '/oauth/revoke', method: 'PUT' }],
    [{ token: CANARY }, { path: '/oauth/revoke' }],
  ] as const) {
    collect(await sidecar.postToken(body, request))
  }
  const revoked = await sidecar.grant(PASSWORD)
  collect(await sidecar.postToken({ token: revoked.refresh_token }, { path: '/oauth/revoke' }))
  return [first, rotated, revoked]
}

/** Sends requests with a secret at every place, over HTTP/1, HTTP/2 and WebSockets. `collect` gets each response. */
export async function forward(
  sidecar: Served,
  token: string,
  collect: (response: Response) => void,
): Promise<void> {
  const everywhere = [
    'Cookie',
    `session=${CANARY}`,
    `X-${CANARY}`,
    CANARY,
    'Referer',
    `https://x/?${CANARY}`,
    'X-Api-Key',
    CANARY,
  ]
  for (const transport of ['tls', 'h2'] as const) {
    const connection = await connect({ transport, url: sidecar.url })
    for (const credentials of [token, CANARY, `${token} ${CANARY}`]) {
      const fields = ['Authorization', `Bearer ${credentials}`, ...everywhere]
      collect(
        await connection.send({
          path: `/api?key=${CANARY}&access_token=${CANARY}`,
          fields,
          body: CANARY,
          method: 'PUT',
        }),
      )
    }
    collect(
      await connection.send({ path: `/api?${CANARY}`, fields: ['Authorization', `Basic ${btoa(CANARY)}`] }),
    )
    connection.close()
  }
  const headers = { Cookie: CANARY, 'X-Key': CANARY }
  const { socket } = await openWebSocket(sidecar.url, {
    path: `/ws?key=${CANARY}`,
    token,
    headers,
    protocols: [CANARY],
  })
  const echoed = once(socket, 'message')
  socket.send(CANARY)
  await echoed
  socket.close()
  await once(socket, 'close')
  await refusedWebSocket(sidecar.url, { path: `/ws?key=${CANARY}`, token: CANARY, headers })
}

/** Sends bytes with secrets that are malformed or only part of a request, and returns the responses. */
export async function sendGarbage(sidecar: Served): Promise<string> {
  const head = 'GET / HTTP/1.1\r\nHost: x\r\n'
  const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
  const close = 'Connection: close\r\n\r\n'
  const token = 'POST /oauth/token HTTP/1.1\r\nHost: x\r\n'
  const garbage = [
    `${CANARY} ${CANARY}\r\n\r\n`,
    `${head}${CANARY}\r\n\r\n`,
    `${head}Authorization: Bearer ${CANARY}\x01\r\n\r\n`,
    `${head}Authorization: Bearer ${CANARY}\r\nAuthorization: Bearer ${CANARY}\r\n${close}`,
    `${head}X_Forwarded_For: ${CANARY}\r\n${close}`,
    `${head}X: ${CANARY.repeat(10_000)}\r\n\r\n`,
    `${head}Cookie: ${CANARY}`,
    `${token}Transfer-Encoding: chunked\r\n\r\n${CANARY}\r\n`,
    `${token}Content-Length: 100\r\n\r\n${CANARY}`,
    `${preface}${CANARY.repeat(20)}`,
  ]
  const responses = garbage.map(async (bytes) => {
    const raw = await rawConnection(sidecar.url, { alpn: [bytes.startsWith('PRI') ? 'h2' : 'http/1.1'] })
    raw.write(bytes)
    return raw.closed
  })
  // Cleartext to a port that expects TLS.
  const cleartext = await rawConnection(sidecar.url.replace('https:', 'http:'))
  cleartext.write(`GET /?${CANARY} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await cleartext.closed
  return (await Promise.all(responses)).join('\n')
}

/** Lets the device send malformed responses with secrets, then takes it down; returns what the client received. */
export async function failAtDevice({ device }: Site, sidecar: Served, token: string): Promise<string> {
  const faults = [
    `HTTP/1.1 200 OK\r\nSet-Cookie: ${CANARY}\r\n${CANARY}\r\n\r\n`,
    `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\nX: ${CANARY}\r\n\r\n`,
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${CANARY}\r\n`,
    `HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort`,
    `${CANARY}\r\n\r\n`,
  ]
  const left = [...faults]
  device.handle(async (request, response) => {
    await readBody(request)
    response.socket?.end(left.shift() ?? '')
  })
  const responses: string[] = []
  for (const _ of faults) {
    const request = {
      path: `/fault?${CANARY}`,
      method: 'POST',
      token,
      body: CANARY,
      fields: ['Cookie', CANARY],
    }
    responses.push(
      await sidecar.request(request).then(
        ({ text }) => text,
        () => 'broken',
      ),
    )
  }
  await device.stop()
  responses.push((await sidecar.request({ path: `/down?${CANARY}`, token })).text)
  return responses.join('\n')
}
