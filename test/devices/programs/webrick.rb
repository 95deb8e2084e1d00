# A device in Ruby: files, and a program at /digest that answers with the SHA-256 of its body.
require 'digest'
require 'webrick'

port, root = ARGV
server = WEBrick::HTTPServer.new(
  BindAddress: '127.0.0.1', Port: port.to_i, DocumentRoot: root,
  AccessLog: [], Logger: WEBrick::Log.new(nil, WEBrick::BasicLog::FATAL)
)
server.mount_proc('/digest') do |request, response|
  response.content_type = 'text/plain'
  response.body = "#{Digest::SHA256.hexdigest(request.body.to_s)}  -\n"
end
trap('TERM') { server.shutdown }
server.start
