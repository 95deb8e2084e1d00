import { send } from '../../support/client.ts'
import type { Response } from '../../support/message.ts'
import { rawConnection } from '../../support/raw.ts'
import { responsesIn } from '../../support/raw-responses.ts'
import type { RealServer } from './real-server.ts'

/** Posts a form, as it is, to the token endpoint or to `path`. */
export function postForm({ url }: RealServer, body: string, path = '/oauth/token'): Promise<Response> {
  const fields = ['Content-Type', 'application/x-www-form-urlencoded']
  return send({ transport: 'http1', url, method: 'POST', path, fields, body })
}

/** The form of a login with the right password. */
export function loginForm({ password }: RealServer): string {
  return `grant_type=password&password=${encodeURIComponent(password)}`
}

/** Logs in and resolves with the tokens. */
export async function login(
  server: RealServer,
): Promise<{ readonly access: string; readonly refresh: string }> {
  const { access_token: access, refresh_token: refresh } = (await postForm(server, loginForm(server))).json()
  return { access: String(access), refresh: String(refresh) }
}

/** Asks for the API path with these values of `Authorization`, each in its own field. */
export function ask({ url, path }: RealServer, ...authorization: readonly string[]): Promise<Response> {
  return send({
    transport: 'http1',
    url,
    path,
    fields: authorization.flatMap((value) => ['Authorization', value]),
  })
}

/** Asks for the API path with two `Host` fields, and resolves with the status. */
export async function askTwoHosts({ url, path }: RealServer, accessToken: string): Promise<number> {
  const connection = await rawConnection(url)
  connection.write(
    `GET ${path} HTTP/1.1\r\nHost: one\r\nHost: two\r\nAuthorization: Bearer ${accessToken}\r\nConnection: close\r\n\r\n`,
  )
  return responsesIn(await connection.closed)[0]?.status ?? 0
}
