import { json } from '../exchange.ts'
import type { Fault } from '../fault.ts'
import { tokenResponse } from '../token-endpoint.ts'
import { changing, isError, members, onForm, onGrant } from './layers.ts'

/** Faults of the refusals of the token endpoint (C5), and of what refusals tell (C9). */
export const REFUSAL_FAULTS: readonly Fault[] = [
  {
    name: 'wrong-password-401',
    sentence: 'a wrong password is 401',
    breaks: { C5: /401/ },
    answer: onGrant('password', 400, (reply) =>
      isError(reply, 'invalid_grant') ? { ...reply, status: 401 } : reply,
    ),
  },
  {
    name: 'wrong-password-403',
    sentence: 'a wrong password is 403',
    breaks: { C5: /403/, C19: /403/ },
    answer: onGrant('password', 400, (reply) =>
      isError(reply, 'invalid_grant') ? { ...reply, status: 403 } : reply,
    ),
  },
  {
    name: 'wrong-password-500',
    sentence: 'a wrong password makes the server fail',
    breaks: { C5: /500/ },
    answer: onGrant('password', 400, (reply) =>
      isError(reply, 'invalid_grant') ? json(500, { error: 'internal server error' }) : reply,
    ),
  },
  {
    name: 'any-password',
    sentence: 'a wrong password gives tokens',
    breaks: { C5: /200/ },
    answer: onGrant('password', 400, (reply, _form, { tokens }) =>
      isError(reply, 'invalid_grant') ? tokenResponse(tokens.login()) : reply,
    ),
  },
  {
    name: 'any-refresh-token',
    sentence: 'an unknown refresh token gives tokens',
    breaks: { C5: /200/ },
    answer: onForm((form, request, next, { tokens }) => {
      const shown = form.get('refresh_token')
      const unknown = shown !== undefined && !tokens.isRefreshToken(shown) && !tokens.admits(shown)
      return unknown ? tokenResponse(tokens.login()) : next(request)
    }),
  },
  {
    name: 'access-token-refreshes',
    sentence: 'an access token works as a refresh token',
    breaks: { C5: /200/ },
    answer: onForm((form, request, next, { tokens }) =>
      tokens.admits(form.get('refresh_token') ?? '') ? tokenResponse(tokens.login()) : next(request),
    ),
  },
  {
    name: 'other-grant-invalid-grant',
    sentence: 'another grant type is invalid_grant',
    breaks: { C5: /invalid_grant/ },
    answer: changing(
      (_request, reply) => isError(reply, 'unsupported_grant_type'),
      members((body) => ({ ...body, error: 'invalid_grant' })),
    ),
  },
  {
    name: 'error-without-code',
    sentence: 'the refusal of a wrong password has no `error`',
    breaks: { C5: /error/ },
    answer: onGrant('password', 400, (reply) =>
      isError(reply, 'invalid_grant') ? members(({ error: _, ...body }) => body)(reply) : reply,
    ),
  },
  {
    name: 'error-as-text',
    sentence: 'the refusal of a wrong password is plain text',
    breaks: { C5: /400 \(text\/plain/ },
    answer: onGrant('password', 400, (reply) =>
      isError(reply, 'invalid_grant')
        ? { ...reply, fields: { ...reply.fields, 'Content-Type': 'text/plain' }, body: 'Wrong password' }
        : reply,
    ),
  },
  {
    name: 'error-quotes-form',
    sentence: 'the refusal of a form quotes it',
    breaks: { C9: /password|token/ },
    answer: onForm(async (form, request, next) => {
      const reply = await next(request)
      const quoted = [...form].map(([name, value]) => `${name}=${value}`).join(', ')
      return reply.status === 400 ? members((body) => ({ ...body, error_description: quoted }))(reply) : reply
    }),
  },
  {
    name: 'error-quotes-token',
    sentence: 'a 401 quotes the Authorization field',
    breaks: { C9: /token/ },
    answer: changing(
      (_request, { status }) => status === 401,
      (reply, { fields }) => members((body) => ({ ...body, shown: fields.get('authorization') }))(reply),
    ),
  },
  {
    name: 'error-quotes-target',
    sentence: 'a 401 quotes the target, with its query',
    breaks: { C9: /token/ },
    answer: changing(
      (_request, { status }) => status === 401,
      (reply, { path, query }) => members((body) => ({ ...body, target: path + query }))(reply),
    ),
  },
]
