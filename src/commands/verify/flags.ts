import { BOUNDS, DEFAULTS, DOCUMENTED_LIMITS } from '../../verify/options.ts'

const { path, flood, revocationPath } = DEFAULTS
const { api, oauth } = DOCUMENTED_LIMITS

/** The flags of `postern verify` and what `--help` says about each, in its order. */
export const VERIFY_FLAGS: readonly (readonly [flag: string, description: string])[] = [
  ['--password-file <file>', 'file with one line: the password of the device, not a hash'],
  ['--path <path>', `path of the API that every request to it asks for (default: ${path})`],
  ['--quick', 'leave out what has to wait for the end of a window, and the floods'],
  ['--only <ids>', 'check only these promises, such as C4,C13'],
  ['--dry-run', 'only say what the run would do; send nothing'],
  ['--json', 'print one JSON document on standard output, and the text on standard error'],
  ['--junit <file>', "write the result in JUnit's XML, too, for CI systems"],
  ['--ca <file>', 'certificate of the server, or of its authority (PEM)'],
  ['--insecure', 'accept any certificate'],
  ['--api-limit <limit>', `the API limit: requests/seconds (default: ${api.requests}/${api.window})`],
  [
    '--oauth-limit <limit>',
    `the limit of the token endpoint, likewise (default: ${oauth.requests}/${oauth.window})`,
  ],
  [
    '--flood <seconds>',
    `length of each flood (${BOUNDS.floodSeconds.join(' to ')}, default: ${flood.seconds})`,
  ],
  [
    '--connections <number>',
    `connections of each flood (${BOUNDS.floodConnections.join(' to ')}, default: ${flood.connections})`,
  ],
  [
    '--revocation-path <path>',
    `where the run tries to revoke its tokens at the end, or off (default: ${revocationPath})`,
  ],
]
