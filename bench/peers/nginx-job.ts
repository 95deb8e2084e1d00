import type { Job } from './job.ts'
import { KEPT_ALIVE, upstream, withTls } from './nginx.ts'
import { nginxVersion, startNginx } from './nginx-process.ts'
import { LIMITED, unauthorized } from './node-job/answers.ts'
import { startServer } from './node-job/start-server.ts'

/** nginx with `auth_request` to a token service in Node, which counts and judges each request: the usual way to check tokens with nginx. */
export const nginxJob: Job = {
  name: 'nginx auth_request',
  does: 'a token service in Node',
  version: nginxVersion,
  async start(place, settings) {
    const service = await startServer('token-service.ts', place, { ...settings, pair: undefined })
    const { pair, state } = settings
    const { port, child } = await startNginx(
      (own) => `
  access_log ${state}/access.log combined buffer=64k;
  ${upstream('device', `127.0.0.1:${place.devicePort}`)}
  ${upstream('tokens', `127.0.0.1:${service.port}`)}
  map $request_uri $backend { ~^/oauth/token(\\?|$) tokens; default device; }
  server {
    listen 127.0.0.1:${own}${pair === undefined ? ';' : withTls(pair)}
    merge_slashes off;
    client_max_body_size 0;
    error_page 400 = /malformed;
    error_page 401 = @unauthorized;
    error_page 403 = @limited;
    add_header X-RateLimit-Limit $limit always;
    add_header X-RateLimit-Remaining $remaining always;
    add_header X-RateLimit-Reset $reset always;
    location / {
      auth_request /gate;
      auth_request_set $limit $upstream_http_x_ratelimit_limit;
      auth_request_set $remaining $upstream_http_x_ratelimit_remaining;
      auth_request_set $reset $upstream_http_x_ratelimit_reset;
      auth_request_set $retry $upstream_http_retry_after;
      auth_request_set $challenge $upstream_http_www_authenticate;
      proxy_hide_header X-RateLimit-Limit;
      proxy_hide_header X-RateLimit-Remaining;
      proxy_hide_header X-RateLimit-Reset;
      ${KEPT_ALIVE}
      proxy_set_header Host $host;
      proxy_set_header Authorization "";
      proxy_set_header Forwarded "";
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Port "";
      proxy_set_header X-Request-Id $request_id;
      proxy_set_header Via "1.1 nginx";
      proxy_pass http://$backend$request_uri;
    }
    location = /gate {
      internal;
      ${KEPT_ALIVE}
      proxy_set_header X-Client $remote_addr;
      proxy_set_header X-Target $request_uri;
      proxy_set_header Content-Length "";
      proxy_pass_request_body off;
      proxy_pass http://tokens/gate;
    }
    location @unauthorized {
      add_header X-RateLimit-Limit $limit always;
      add_header X-RateLimit-Remaining $remaining always;
      add_header X-RateLimit-Reset $reset always;
      add_header WWW-Authenticate $challenge always;
      return 401 '${unauthorized(true).body}';
    }
    location @limited {
      add_header X-RateLimit-Limit $limit always;
      add_header X-RateLimit-Remaining $remaining always;
      add_header X-RateLimit-Reset $reset always;
      add_header Retry-After $retry always;
      return 429 '${LIMITED.body}';
    }
    location = /malformed {
      internal;
      ${KEPT_ALIVE}
      proxy_set_header X-Client $remote_addr;
      proxy_set_header Content-Length "";
      proxy_pass_request_body off;
      proxy_pass http://tokens/malformed;
    }
  }`,
      place.core,
    )
    const scheme = pair === undefined ? 'http' : 'https'
    return { url: `${scheme}://127.0.0.1:${port}`, children: [child, service.child] }
  },
}
