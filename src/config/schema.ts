import { field, section, type ValueOf, z } from './field.ts'
import { adminField, listenField } from './listen-fields.ts'
import { passwordField, passwordsField } from './password-fields.ts'
import {
  browserField,
  corsField,
  limitsField,
  oauthField,
  publicPathsField,
  tokensField,
} from './policy-fields.ts'
import { storeField } from './store-fields.ts'
import { upstreamField } from './upstream-fields.ts'
import { flag, oneOf, ownFolder, plainText, unless } from './value-fields.ts'

const logField = section({
  level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    default: 'info',
  }),
  format: oneOf(['auto', 'json', 'pretty'], { default: 'auto' }),
  access: field<boolean | 'changes'>(
    () => z.union([z.boolean(), z.literal('changes')], { error: 'must be true, false or changes' }),
    { default: true, type: '`true`, `false` or `changes`', textForm: 'yaml' },
  ),
})

export const stateDirField = ownFolder({ default: './state' })

/** The whole configuration: source of the types, the error messages, the JSON Schema and the reference page. */
export const schema = section({
  listen: listenField,
  admin: adminField,
  upstream: upstreamField,
  password: passwordField,
  passwords: passwordsField,
  tokens: tokensField,
  store: storeField,
  limits: limitsField,
  oauth: oauthField,
  publicPaths: publicPathsField,
  browser: browserField,
  cors: corsField,
  enforce: flag({ default: true }),
  stateDir: stateDirField,
  realm: plainText('text without control characters', {
    default: 'device',
    problemOf: unless(
      (given) => !/\p{Cc}/u.test(given) && given.isWellFormed(),
      'must be text without control characters, such as a line end or a tab',
    ),
  }),
  statusCodes: oneOf(['contract', 'http'], { default: 'contract' }),
  log: logField,
})

/** The complete configuration: defaults filled in, durations in milliseconds, sizes in bytes. */
export type Config = ValueOf<typeof schema>
