import type { AddressInfo } from 'node:net'
import { startNginx as launchNginx } from '../../../bench/peers/nginx-process.ts'
import { DOCUMENTED_LIMITS } from '../../../src/verify/options.ts'
import type { Limit } from '../../../src/verify/stated-limits.ts'
import { closeLater } from '../../support/cleanup.ts'
import { needs } from '../../support/tools.ts'
import { type Limits, PASSWORD, PATH, type RealServer, stopServer } from './real-server.ts'
import { startTokenStub } from './token-stub.ts'

/**
 * nginx with `limit_req` in front of a service that issues and checks tokens. `limit_req` is a leaky bucket: `burst` admits
 * as many requests at once as the limit allows, and `rate` as many in the time of a window.
 */
export async function startNginx(limits: Limits = DOCUMENTED_LIMITS): Promise<RealServer> {
  needs('nginx')
  const stub = await startTokenStub()
  const { port: stubPort } = stub.address() as AddressInfo // listening on TCP
  const { port, child } = await launchNginx(
    (own) => `
  # The path as it was sent: a location would match other spellings, too. An empty key is not limited.
  map $request_uri $oauth_client { ~^/oauth/token(\\?|$) $binary_remote_addr; default ""; }
  map $request_uri $api_client { ~^/oauth/token(\\?|$) ""; default $binary_remote_addr; }
  limit_req_zone $oauth_client zone=oauth:1m rate=${ratePerMinute(limits.oauth)}r/m;
  limit_req_zone $api_client zone=api:1m rate=${ratePerMinute(limits.api)}r/m;
  limit_req_status 429;
  server {
    listen 127.0.0.1:${own};
    limit_req zone=oauth burst=${limits.oauth.requests - 1} nodelay;
    limit_req zone=api burst=${limits.api.requests - 1} nodelay;
    location / { proxy_pass http://127.0.0.1:${stubPort}; proxy_set_header Host $http_host; }
  }`,
    undefined,
  )
  let closed: Promise<unknown> | undefined
  const close = async (): Promise<void> => {
    closed ??= Promise.all([child.stop(), stopServer(stub)])
    await closed
  }
  closeLater(close)
  return { url: `http://127.0.0.1:${port}`, password: PASSWORD, path: PATH, close }
}

function ratePerMinute({ requests, window }: Limit): number {
  return Math.max(1, Math.round((requests * 60) / window))
}
