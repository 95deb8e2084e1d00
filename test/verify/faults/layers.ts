import { type Answer, type Incoming, onlyValue, type Reply } from '../exchange.ts'
import { parseForm } from '../token-endpoint.ts'
import type { Inside, Layer } from './fault.ts'

type Members = Readonly<Record<string, unknown>>
type Form = ReadonlyMap<string, string>

/** Changes the replies that match. */
export function changing(
  matches: (request: Incoming, reply: Reply) => boolean,
  change: (reply: Reply, request: Incoming) => Reply,
): Layer {
  return async (request, next) => {
    const reply = await next(request)
    return matches(request, reply) ? change(reply, request) : reply
  }
}

/** Changes the requests that match, before the next step sees them. */
export function pretending(
  matches: (request: Incoming) => boolean,
  change: (request: Incoming) => Incoming,
): Layer {
  return (request, next) => next(matches(request) ? change(request) : request)
}

/** The API lets these requests through as if they had a valid token. */
export function lettingThrough(matches: (request: Incoming, inside: Inside) => boolean): Layer {
  return (request, next, inside) => {
    if (inside.endpointOf(request) !== 'api' || !matches(request, inside)) return next(request)
    return next(withField(request, 'authorization', `Bearer ${inside.tokens.login().accessToken}`))
  }
}

/** In front of the token endpoint, for every well-formed form. */
export function onForm(
  answer: (form: Form, request: Incoming, next: Answer, inside: Inside) => Reply | Promise<Reply>,
): Layer {
  return async (request, next, inside) => {
    const form = await formOf(request)
    return form === undefined ? next(request) : answer(form, request, next, inside)
  }
}

/** Changes the replies to one grant, the successful ones or the refusals. */
export function onGrant(
  grant: 'password' | 'refresh_token',
  status: 200 | 400,
  change: (reply: Reply, form: Form, inside: Inside) => Reply,
): Layer {
  return onForm(async (form, request, next, inside) => {
    const reply = await next(request)
    return form.get('grant_type') === grant && reply.status === status ? change(reply, form, inside) : reply
  })
}

/** Whether the reply is an OAuth error with this code. */
export function isError(reply: Reply, code: string): boolean {
  return reply.status === 400 && membersOf(reply).error === code
}

/** The members of a JSON object. */
export function membersOf({ body }: Reply): Members {
  return JSON.parse(body) as Members // written by the documented server
}

/** Changes the members of a JSON object. */
export function members(change: (members: Members) => Members): (reply: Reply) => Reply {
  return (reply) => ({ ...reply, body: JSON.stringify(change(membersOf(reply))) })
}

/** The parameters of a request to the token endpoint; undefined if it has no well-formed form. */
export async function formOf(request: Incoming): Promise<Form | undefined> {
  if (request.path !== '/oauth/token' || request.method !== 'POST') return undefined
  return parseForm((await request.body()) ?? '')
}

/** The bearer token of a request, if it shows one. */
export function tokenOf(request: Incoming): string | undefined {
  return /^Bearer (.+)$/.exec(onlyValue(request, 'authorization') ?? '')?.[1]
}

/** The request with one field of this name. */
export function withField(request: Incoming, name: string, value: string): Incoming {
  return { ...request, fields: new Map(request.fields).set(name, [value]) }
}

/** The request with another form. */
export function withForm(request: Incoming, form: Readonly<Record<string, string>>): Incoming {
  const text = new URLSearchParams(form).toString()
  const retyped = withField(request, 'content-type', 'application/x-www-form-urlencoded')
  return { ...retyped, body: () => Promise.resolve(text) }
}

/** The reply without some of its fields. */
export function without(reply: Reply, ...names: readonly string[]): Reply {
  const fields = Object.entries(reply.fields).filter(([name]) => !names.includes(name))
  return { ...reply, fields: Object.fromEntries(fields) }
}

/** The reply with some fields changed. */
export function withFields(reply: Reply, fields: Reply['fields']): Reply {
  return { ...reply, fields: { ...reply.fields, ...fields } }
}

/** A text that the server remembers by this name. */
export function remembered({ memory }: Inside, name: unknown): string | undefined {
  const text = memory.get(name)
  return typeof text === 'string' ? text : undefined
}
