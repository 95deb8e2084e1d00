import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { prefix64 } from '../../../src/http/ip.ts'
import { type Answer, FAILED, MALFORMED, unauthorized, WRONG_METHOD } from './answers.ts'
import { bearerIn, isTokenEndpoint, LONGEST_FORM } from './requests.ts'
import { readSettings } from './server-settings.ts'
import { Tokens } from './tokens.ts'
import { Windows } from './windows.ts'

/**
 * The token service behind nginx. `/gate` counts and judges a request that nginx describes in two fields: 204 if it passes, 401 without a
 * valid token, 403 past the limit, the only statuses by which nginx refuses. `/oauth/token` gives tokens to requests that have passed.
 * `/malformed` answers what nginx could not read.
 */
const { port, limits, state } = readSettings()
const tokens = new Tokens(state)
const windows = new Windows(limits)

createServer({ keepAliveTimeout: 3_600_000 }, (request, response) => {
  if (request.url === '/gate') return judge(request, response)
  if (request.url === '/malformed') return write(response, MALFORMED, countOf(request, '').fields)
  answer(request).then(
    (answered) => write(response, answered),
    () => write(response, FAILED),
  )
}).listen(port, '127.0.0.1')

function judge(request: IncomingMessage, response: ServerResponse): void {
  const target = String(request.headers['x-target'])
  const { passes, fields } = countOf(request, target)
  const token = bearerIn(request.rawHeaders)
  const isAdmitted = isTokenEndpoint(target) || (token !== undefined && tokens.isLive('access', token))
  const challenge = unauthorized(token !== undefined).headers['WWW-Authenticate']
  if (passes && !isAdmitted) response.writeHead(401, { ...fields, 'WWW-Authenticate': challenge })
  else response.writeHead(passes ? 204 : 403, fields)
  response.end()
}

function countOf(request: IncomingMessage, target: string) {
  const client = prefix64(String(request.headers['x-client']))
  return windows.count(isTokenEndpoint(target) ? 'oauth' : 'api', client)
}

async function answer(request: IncomingMessage): Promise<Answer> {
  if (request.method !== 'POST') return WRONG_METHOD
  // nginx sends no larger one.
  const body = await text(request)
  return body.length > LONGEST_FORM ? MALFORMED : tokens.grant(request.headers['content-type'], body)
}

function write(
  response: ServerResponse,
  { status, headers, body }: Answer,
  more: Answer['headers'] = {},
): void {
  response.writeHead(status, { ...headers, ...more, 'Content-Length': Buffer.byteLength(body) }).end(body)
}
