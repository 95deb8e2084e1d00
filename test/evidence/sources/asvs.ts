import type { Source } from '../requirement.ts'
import { API } from './asvs/api.ts'
import { AUTHENTICATION } from './asvs/authentication.ts'
import { AUTHORIZATION } from './asvs/authorization.ts'
import { COMMUNICATION } from './asvs/communication.ts'
import { CONFIGURATION } from './asvs/configuration.ts'
import { LOGGING } from './asvs/logging.ts'
import { OAUTH } from './asvs/oauth.ts'
import { SESSIONS } from './asvs/sessions.ts'

/** The chapters that a gate with logins, tokens and a log touches. */
export const ASVS: Source = {
  name: 'ASVS',
  title: 'OWASP Application Security Verification Standard',
  version:
    'Version 5.0.0 of May 2025, and the same text in the repository in July 2026: the chapters V4, V6 to V10, V12, V13 and V16. L1 to L3 before a requirement is its level.',
  readAt: 'https://github.com/OWASP/ASVS/tree/master/5.0/en',
  leftOut: {
    '4.3': 'Postern knows no GraphQL.',
    '4.4.3 and 4.4.4':
      'A WebSocket is admitted by the same token or session as every request, so it needs no token of its own.',
    '6.3.6': 'Postern sends and reads no mail.',
    '6.4.1, 6.4.2 and 6.4.4':
      'Postern makes no first passwords but that of a demo, asks no secret questions, and has no second factor that could be lost.',
    '6.5, but for 6.5.6, and 6.6': 'There is no second factor: 6.3.3.',
    '6.7': 'Nobody logs in by a key or a card.',
    '6.8, 7.1.3 and 7.6.1': 'Postern relies on no identity provider.',
    '8.4.1': 'One Postern serves one device of one owner.',
    '9.1 and 9.2':
      'The tokens of Postern are opaque: they carry no content that could be signed, forged or read. Postern looks up their digest, which tells their kind (H34) and their end (C7).',
    '10.1.2 and 10.2': 'Postern is no OAuth client.',
    '10.3.4': 'All tokens come from a password: there is no stronger login that a request could demand.',
    '10.4.1 to 10.4.3, 10.4.6, 10.4.12, 10.4.13 and 10.4.15':
      'There is no authorization endpoint, and there are no codes.',
    '10.4.7': 'Clients cannot register.',
    '10.5 and 10.6': 'Postern has no OpenID Connect.',
    '10.7': 'Nobody is asked for consent: whoever gives the password to a client consents.',
    '12.1.3': 'Postern asks clients for no certificates.',
  },
  requirements: {
    ...API,
    ...AUTHENTICATION,
    ...SESSIONS,
    ...AUTHORIZATION,
    ...OAUTH,
    ...COMMUNICATION,
    ...CONFIGURATION,
    ...LOGGING,
  },
}
