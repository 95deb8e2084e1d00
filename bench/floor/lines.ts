import { type Fields, fieldLines, keepFields } from '../../src/http/fields.ts'
import type { DeviceResponse } from './floor-exchange.ts'

const HEAD_END = '\r\n\r\n'

/** Fields that the floor adds to every request when the capability `policy` is disabled. */
const ADDED: Fields = [
  ...['X-Forwarded-For', '127.0.0.1', 'X-Forwarded-Proto', 'https'],
  ...['X-Request-Id', '0123456789abcdef0123456789abcdef', 'Via', '1.1 postern'],
]
const END_OF_REQUEST = `${fieldLines(ADDED)}Connection: keep-alive\r\n\r\n`

/** The lines of a head. Throws if the head is incomplete: the floor does not buffer. */
function headLines(text: string): { readonly lines: readonly string[]; readonly end: number } {
  const end = text.indexOf(HEAD_END)
  if (end === -1) throw new Error('head that did not arrive in one piece')
  return { lines: text.slice(0, end).split('\r\n'), end: end + HEAD_END.length }
}

function nameOf(line: string): string {
  return line.slice(0, line.indexOf(':')).toLowerCase()
}

/** The connection fields that the floor drops. */
function isConnectionField(name: string): boolean {
  return name === 'connection' || name === 'keep-alive'
}

/** The request for the device: without the credential, with the fields of a proxy. */
export function rewriteRequest(text: string): { readonly authorization: string; readonly rewritten: string } {
  const { lines } = headLines(text)
  let authorization = ''
  let rewritten = `${lines[0]}\r\n`
  for (let i = 1; i < lines.length; i += 1) {
    const line = lines[i] ?? ''
    const name = nameOf(line)
    if (name === 'authorization') authorization = line.slice(name.length + 2)
    else if (name !== 'connection') rewritten += `${line}\r\n`
  }
  return { authorization, rewritten: rewritten + END_OF_REQUEST }
}

/** The HTTP/1.1 head for the device of a request over HTTP/2. */
export function rewriteHttp2Request(raw: Fields): {
  readonly authorization: string
  readonly rewritten: string
} {
  let [method, path, authority, authorization, lines] = ['', '', '', '', '']
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    if (name === ':method') method = value
    else if (name === ':path') path = value
    else if (name === ':authority') authority = value
    else if (name === 'authorization') authorization = value
    else if (!name.startsWith(':')) lines += `${name}: ${value}\r\n`
  }
  return {
    authorization,
    rewritten: `${method} ${path} HTTP/1.1\r\nHost: ${authority}\r\n${lines}${END_OF_REQUEST}`,
  }
}

/** The response for the client: without connection fields, with the lines of `added`. */
export function rewriteResponse(text: string, added: string): string {
  const { lines, end } = headLines(text)
  let head = `${lines[0]}\r\n`
  for (let i = 1; i < lines.length; i += 1) {
    const line = lines[i] ?? ''
    if (!isConnectionField(nameOf(line))) head += `${line}\r\n`
  }
  return `${head}${added}\r\n${text.slice(end)}`
}

/** Parses a response without checks. */
export function readResponse(text: string): DeviceResponse {
  const { lines, end } = headLines(text)
  const fields: string[] = []
  for (let i = 1; i < lines.length; i += 1) {
    const line = lines[i] ?? ''
    const colon = line.indexOf(':')
    fields.push(line.slice(0, colon), line.slice(colon + 2))
  }
  const line = lines[0] ?? ''
  return { status: Number(line.slice(9, 12)), reason: line.slice(13), fields, body: text.slice(end) }
}

/** The fields for the device when the capability `policy` is disabled. */
export function fieldsForDevice(fields: Fields, authority: string | undefined): string[] {
  const host = authority === undefined ? [] : ['Host', authority]
  const kept = keepFields(fields, (name) => name !== 'connection' && name !== 'authorization')
  return [...host, ...kept, ...ADDED]
}

/** The fields for the client when the capability `policy` is disabled. */
export function fieldsForClient(fields: Fields, added: Fields): string[] {
  return [...keepFields(fields, (name) => !isConnectionField(name)), ...added]
}
