import { json, oauthError } from '../exchange.ts'
import type { Fault } from '../fault.ts'
import { changing, formOf, isError, onForm, pretending, withForm } from './layers.ts'

const failed = json(500, { error: 'internal server error' })

const SPELLINGS = [
  { path: '/oauth/token/', name: 'slash-after' },
  { path: '//oauth/token', name: 'two-slashes' },
  { path: '/oauth/%74oken', name: 'percent-encoded' },
  { path: '/OAUTH/TOKEN', name: 'upper-case' },
]

/** Faults of the requests that the token endpoint takes, and of those that it refuses. */
export const FORM_FAULTS: readonly Fault[] = [
  ...SPELLINGS.map(({ path, name }) => ({
    name: `tokens-at-${name}`,
    sentence: `${path} gives tokens, too`,
    breaks: { C1: /200/ },
    answer: pretending(
      (request) => request.path === path,
      (request) => ({ ...request, path: '/oauth/token' }),
    ),
  })),
  {
    name: 'no-grant-type-is-password',
    sentence: 'a form without grant_type is a login',
    breaks: { C2: /200/ },
    answer: onForm((form, request, next) =>
      next(
        form.has('grant_type')
          ? request
          : withForm(request, { grant_type: 'password', ...Object.fromEntries(form) }),
      ),
    ),
  },
  {
    name: 'no-grant-type-500',
    sentence: 'a form without grant_type makes the server fail',
    breaks: { C2: /500/ },
    answer: onForm((form, request, next) => (form.has('grant_type') ? next(request) : failed)),
  },
  {
    name: 'no-password-invalid-grant',
    sentence: 'a form without a password is invalid_grant',
    breaks: { C2: /invalid_grant/ },
    answer: onForm((form, request, next) =>
      form.get('grant_type') === 'password' && !form.has('password')
        ? oauthError('invalid_grant', 'The password is wrong.')
        : next(request),
    ),
  },
  {
    name: 'empty-password-500',
    sentence: 'an empty password makes the server fail',
    breaks: { C2: /500/ },
    answer: async (request, next) =>
      request.path === '/oauth/token' && /(?:^|&)password=(?:&|$)/.test((await request.body()) ?? '')
        ? failed
        : next(request),
  },
  {
    name: 'repeated-parameter',
    sentence: 'of a repeated parameter the first counts',
    breaks: { C2: /200/ },
    answer: async (request, next) => {
      const repeated = request.path === '/oauth/token' && (await formOf(request)) === undefined
      const text = repeated ? await request.body() : undefined
      if (text === undefined || /^[{<]/.test(text)) return next(request)
      return next(withForm(request, Object.fromEntries([...new URLSearchParams(text)].reverse())))
    },
  },
  {
    name: 'json-form',
    sentence: 'the token endpoint reads JSON, too',
    breaks: { C2: /200/ },
    answer: async (request, next) => {
      const text = request.path === '/oauth/token' ? await request.body() : undefined
      return next(text?.startsWith('{') ? withForm(request, JSON.parse(text)) : request)
    },
  },
  {
    name: 'login-by-get',
    sentence: 'the token endpoint takes a form from the query of a GET, too',
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
    name: 'username-refused',
    sentence: 'a login with a username is refused',
    breaks: { C3: /400/ },
    answer: refusingParameter('username'),
  },
  {
    name: 'client-refused',
    sentence: 'a login with client_id is refused',
    breaks: { C3: /400/ },
    answer: refusingParameter('client_id'),
  },
  {
    name: 'scope-refused',
    sentence: 'a login with a scope is refused',
    breaks: { C3: /400/ },
    answer: refusingParameter('scope'),
  },
  {
    name: 'unknown-parameter-refused',
    sentence: 'a login with a parameter of no meaning is refused',
    breaks: { C3: /400/ },
    answer: onForm((form, request, next) => {
      const known = /^(?:grant_type|password|refresh_token|username|client_id|client_secret|scope)$/
      return [...form.keys()].every((name) => known.test(name))
        ? next(request)
        : oauthError('invalid_request', 'A parameter is unknown.')
    }),
  },
  {
    name: 'basic-refused',
    sentence: 'a login with an Authorization: Basic field is refused',
    breaks: { C3: /400/ },
    answer: onForm((_form, request, next) =>
      request.fields.has('authorization')
        ? oauthError('invalid_client', 'There are no clients here.')
        : next(request),
    ),
  },
  {
    name: 'token-endpoint-405',
    sentence: 'GET to the token endpoint is 405',
    breaks: { C19: /405/ },
    answer: changing(
      ({ method, path }) => method !== 'POST' && path === '/oauth/token',
      (reply) => ({ ...reply, status: 405 }),
    ),
  },
  {
    name: 'missing-parameter-422',
    sentence: 'a form without a required parameter is 422',
    breaks: { C2: /422/, C19: /422/ },
    answer: onForm(async (_form, request, next) => {
      const reply = await next(request)
      return isError(reply, 'invalid_request') ? { ...reply, status: 422 } : reply
    }),
  },
  {
    name: 'other-type-415',
    sentence: 'a body of another content type is 415',
    breaks: { C2: /415/, C19: /415/ },
    answer: changing(
      ({ method, path, fields }) =>
        method === 'POST' &&
        path === '/oauth/token' &&
        !/^application\/x-www-form-urlencoded/i.test(fields.get('content-type')?.[0] ?? ''),
      (reply) => ({ ...reply, status: 415 }),
    ),
  },
]

function refusingParameter(name: string): NonNullable<Fault['answer']> {
  return onForm((form, request, next) =>
    form.has(name) ? oauthError('invalid_request', `There is no ${name} here.`) : next(request),
  )
}
