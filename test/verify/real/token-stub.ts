import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { parse } from 'node:querystring'
import { STATUS } from './real-server.ts'
import { createTokenMemory, type TokenMemory } from './token-memory.ts'

const FORM = 'application/x-www-form-urlencoded'

/** Starts a service behind a proxy: the documented API without its rate limits, on a free port of 127.0.0.1. */
export async function startTokenStub(): Promise<Server> {
  const tokens = createTokenMemory()
  const server = createServer(async (request, response) => {
    const path = request.url?.split('?', 1)[0]
    if (path === '/oauth/token') await answerTokenRequest(tokens, request, response)
    else answerApiRequest(tokens, request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

async function answerTokenRequest(
  tokens: TokenMemory,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = (await request.toArray()).join('')
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  const readable = request.method === 'POST' && type === FORM
  const result = readable ? tokens.grant(parse(body)) : { error: 'invalid_request' }
  const fields = { 'Cache-Control': 'no-store', Pragma: 'no-cache' }
  answer(response, 'error' in result ? 400 : 200, result, fields)
}

function answerApiRequest(tokens: TokenMemory, request: IncomingMessage, response: ServerResponse): void {
  const [field = '', ...others] = request.headersDistinct.authorization ?? []
  const token = /^bearer +(\S.*)$/i.exec(field)?.[1]
  if (token !== undefined && others.length === 0 && tokens.admits(token)) {
    answer(response, 200, STATUS)
    return
  }
  const error = token === undefined ? '' : ', error="invalid_token"'
  answer(response, 401, { error: 'invalid_token' }, { 'WWW-Authenticate': `Bearer realm="stub"${error}` })
}

function answer(
  response: ServerResponse,
  status: number,
  body: object,
  fields: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...fields }).end(JSON.stringify(body))
}
