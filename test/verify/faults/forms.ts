import { json, oauthError, type Reply } from '../exchange.ts'
import { tokenResponse } from '../token-endpoint.ts'
import type { Breaks, Fault, Layer } from './fault.ts'
import { changing, formOf, isError, members, onForm, onGrant, pretending, withForm } from './layers.ts'

const failed = json(500, { error: 'internal server error' })

const LOGIN_PATHS = ['/oauth/token/', '//oauth/token', '/oauth/%74oken', '/OAUTH/TOKEN']

function refusingParameter(name: string): Layer {
  return onForm((form, request, next) =>
    form.has(name) ? oauthError('invalid_request', `There is no ${name} here.`) : next(request),
  )
}

/** What becomes of the refusal of a wrong password. */
const WRONG_PASSWORD: Readonly<Record<string, readonly [breaks: Breaks, change: (reply: Reply) => Reply]>> = {
  'answers 401 to a wrong password': [{ C5: /401/ }, (reply) => ({ ...reply, status: 401 })],
  'answers 403 to a wrong password': [{ C5: /403/, C19: /403/ }, (reply) => ({ ...reply, status: 403 })],
  'fails with 500 on a wrong password': [{ C5: /500/ }, () => failed],
  'refuses a wrong password without `error`': [{ C5: /error/ }, members(({ error: _, ...body }) => body)],
  'refuses a wrong password in plain text': [
    { C5: /400 \(text\/plain/ },
    (reply) => ({ ...reply, fields: { ...reply.fields, 'Content-Type': 'text/plain' }, body: 'Wrong' }),
  ],
}

/** Faults of the requests that the token endpoint takes (C1, C2, C3, C19), of its refusals (C5), and of what they tell (C9). */
export const FORM_FAULTS: readonly Fault[] = [
  ...LOGIN_PATHS.map((path) => ({
    does: `gives tokens at ${path}, too`,
    breaks: { C1: /200/ },
    answer: pretending(
      (request) => request.path === path,
      (request) => ({ ...request, path: '/oauth/token' }),
    ),
  })),
  ...['username', 'client_id', 'scope'].map((name) => {
    return { does: `refuses a login with ${name}`, breaks: { C3: /400/ }, answer: refusingParameter(name) }
  }),
  ...Object.entries(WRONG_PASSWORD).map(([does, [breaks, change]]) => ({
    does,
    breaks,
    answer: onGrant('password', 400, (reply) => (isError(reply, 'invalid_grant') ? change(reply) : reply)),
  })),
  {
    does: 'takes a form without grant_type for a login',
    breaks: { C2: /200/ },
    answer: onForm((form, request, next) =>
      next(withForm(request, { grant_type: 'password', ...Object.fromEntries(form) })),
    ),
  },
  {
    does: 'fails with 500 on a form without grant_type',
    breaks: { C2: /500/ },
    answer: onForm((form, request, next) => (form.has('grant_type') ? next(request) : failed)),
  },
  {
    does: 'answers invalid_grant to a form without a password',
    breaks: { C2: /invalid_grant/ },
    answer: onForm((form, request, next) =>
      form.get('grant_type') === 'password' && !form.has('password')
        ? oauthError('invalid_grant', 'The password is wrong.')
        : next(request),
    ),
  },
  {
    does: 'fails with 500 on an empty password',
    breaks: { C2: /500/ },
    answer: async (request, next) =>
      request.path === '/oauth/token' && /(?:^|&)password=(?:&|$)/.test((await request.body()) ?? '')
        ? failed
        : next(request),
  },
  {
    does: 'reads the first of a repeated parameter',
    breaks: { C2: /200/ },
    answer: async (request, next) => {
      const repeated = request.path === '/oauth/token' && (await formOf(request)) === undefined
      const text = repeated ? await request.body() : undefined
      if (text === undefined || /^[{<]/.test(text)) return next(request)
      return next(withForm(request, Object.fromEntries([...new URLSearchParams(text)].reverse())))
    },
  },
  {
    does: 'reads JSON at the token endpoint, too',
    breaks: { C2: /200/ },
    answer: async (request, next) => {
      const text = request.path === '/oauth/token' ? await request.body() : undefined
      return next(text?.startsWith('{') ? withForm(request, JSON.parse(text)) : request)
    },
  },
  {
    does: 'takes a form from the query of a GET, too',
    breaks: { C2: /invalid_grant|200/ },
    answer: pretending(
      ({ method, path, query }) => method === 'GET' && path === '/oauth/token' && query !== '',
      (request) => ({
        ...withForm(request, Object.fromEntries(new URLSearchParams(request.query))),
        method: 'POST',
      }),
    ),
  },
  {
    does: 'refuses a login with a parameter of no meaning',
    breaks: { C3: /400/ },
    answer: onForm((form, request, next) => {
      const known = /^(?:grant_type|password|refresh_token|username|client_id|client_secret|scope)$/
      return [...form.keys()].every((name) => known.test(name))
        ? next(request)
        : oauthError('invalid_request', 'A parameter is unknown.')
    }),
  },
  {
    does: 'refuses a login with Authorization: Basic',
    breaks: { C3: /400/ },
    answer: onForm((_form, request, next) =>
      request.fields.has('authorization') ? oauthError('invalid_client', 'No clients here.') : next(request),
    ),
  },
  {
    does: 'answers 405 to GET at the token endpoint',
    breaks: { C19: /405/ },
    answer: changing(
      ({ method, path }) => method !== 'POST' && path === '/oauth/token',
      (reply) => ({ ...reply, status: 405 }),
    ),
  },
  {
    does: 'answers 422 to a form without a required parameter',
    breaks: { C2: /422/, C19: /422/ },
    answer: onForm(async (_form, request, next) => {
      const reply = await next(request)
      return isError(reply, 'invalid_request') ? { ...reply, status: 422 } : reply
    }),
  },
  {
    does: 'answers 415 to a body of another content type',
    breaks: { C2: /415/, C19: /415/ },
    answer: changing(
      ({ method, path, fields }) =>
        method === 'POST' &&
        path === '/oauth/token' &&
        !/^application\/x-www-form-urlencoded/i.test(fields.get('content-type')?.[0] ?? ''),
      (reply) => ({ ...reply, status: 415 }),
    ),
  },
  {
    does: 'gives tokens for a wrong password',
    breaks: { C5: /200/ },
    answer: onGrant('password', 400, (reply, _form, { tokens }) =>
      isError(reply, 'invalid_grant') ? tokenResponse(tokens.login()) : reply,
    ),
  },
  {
    does: 'gives tokens for an unknown refresh token',
    breaks: { C5: /200/ },
    answer: onForm((form, request, next, { tokens }) => {
      const shown = form.get('refresh_token')
      const unknown = shown !== undefined && !tokens.isRefreshToken(shown) && !tokens.admits(shown)
      return unknown ? tokenResponse(tokens.login()) : next(request)
    }),
  },
  {
    does: 'takes an access token for a refresh token',
    breaks: { C5: /200/ },
    answer: onForm((form, request, next, { tokens }) =>
      tokens.admits(form.get('refresh_token') ?? '') ? tokenResponse(tokens.login()) : next(request),
    ),
  },
  {
    does: 'answers invalid_grant to another grant type',
    breaks: { C5: /invalid_grant/ },
    answer: changing(
      (_request, reply) => isError(reply, 'unsupported_grant_type'),
      members((body) => ({ ...body, error: 'invalid_grant' })),
    ),
  },
  {
    does: 'quotes a form that it refuses',
    breaks: { C9: /password|token/ },
    answer: onForm(async (form, request, next) => {
      const reply = await next(request)
      const quoted = [...form].map(([name, value]) => `${name}=${value}`).join(', ')
      return reply.status === 400 ? members((body) => ({ ...body, error_description: quoted }))(reply) : reply
    }),
  },
  {
    does: 'quotes the Authorization field in a 401',
    breaks: { C9: /token/ },
    answer: changing(
      (_request, { status }) => status === 401,
      (reply, { fields }) => members((body) => ({ ...body, shown: fields.get('authorization') }))(reply),
    ),
  },
  {
    does: 'quotes the target with its query in a 401',
    breaks: { C9: /token/ },
    answer: changing(
      (_request, { status }) => status === 401,
      (reply, { path, query }) => members((body) => ({ ...body, target: path + query }))(reply),
    ),
  },
]
