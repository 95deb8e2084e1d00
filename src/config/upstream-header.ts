/** Fields of one connection only (RFC 9110 §7.6.1), which a proxy must not send on, let alone make up. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Fields that the sidecar writes itself, where a second value would make two readers disagree. */
const WRITTEN_HERE: ReadonlySet<string> = new Set([
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-request-id',
])

/** Why a field of this name cannot be set on every forwarded request, or `undefined` when it can. */
export function headerNameProblem(name: string): string | undefined {
  const lower = name.toLowerCase()
  if (!/^[!#$%&'*+\-.^_`|~\da-z]+$/.test(lower)) return 'must be named by a token (RFC 9110 §5.6.2)'
  if (lower === 'host') return 'must not be set here; upstream.host decides it'
  if (lower === 'content-length') return 'must not be set: it frames the body, and the client decides it'
  if (lower === 'expect') return "must not be set: the client's own expectation is answered by the sidecar"
  if (HOP_BY_HOP.has(lower)) return 'must not be set: it belongs to one connection (RFC 9110 §7.6.1)'
  if (WRITTEN_HERE.has(lower)) return 'must not be set: the sidecar writes it itself'
  return undefined
}

/** Why a text cannot be a field value (RFC 9110 §5.5), or `undefined` when it can. The text is never repeated. */
export function headerValueProblem(value: string): string | undefined {
  for (let i = 0; i < value.length; i += 1) {
    const code = value.charCodeAt(i)
    if ((code < 0x20 && code !== 0x09) || code === 0x7f)
      return 'must not hold control characters or line ends'
    if (code > 0xff) return 'must not hold characters outside ISO 8859-1'
  }
  return value === value.trim() ? undefined : 'must not begin or end with a space'
}
