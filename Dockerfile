# Static, small, without root. For closed networks, give the base images and proxies as build arguments:
#   docker build --build-arg BUILD_IMAGE=registry.local/golang:1.26 --build-arg GOPROXY=https://proxy.local -t audit .
# Credentials plugins (aws, gke-gcloud-auth-plugin, kubelogin) are not in it. Use a token kubeconfig (deploy/rbac.yaml), the
# cluster's own service account, or an image of your own made FROM this one with the plugin added.
ARG BUILD_IMAGE=golang:1.26
FROM ${BUILD_IMAGE} AS build
ARG GOPROXY
ARG HTTP_PROXY
ARG HTTPS_PROXY
ARG NO_PROXY
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY audit audit
COPY cmd cmd
COPY notify notify
COPY store store
RUN CGO_ENABLED=0 go build -trimpath -tags timetzdata -ldflags "-s -w -X main.version=${VERSION}" -o /out/audit ./cmd/audit

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/audit /audit
USER 65532:65532
ENTRYPOINT ["/audit"]
